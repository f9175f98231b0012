// gRPC as a client of `proto/app_server.proto` (Node). A frame is a flag, a length and a message; the message is one text
// in field 1. That is all, so it is written by hand.

import { connect as openSession } from "node:http2";

import { DialError } from "./address.js";
import { Exchange } from "./proof.js";
import { inTime, leave, sender } from "./sockets.js";

const PATH = "/codex.app_server.v1.AppServer/Connect";
const HEADER_BYTES = 5;
/** The longest message that is kept; a longer one is passed on as it is, and costs a note. */
const MESSAGE_BYTES = 32 * 1024 * 1024 + 1024;
/** Field 1, a text. */
const JSON_FIELD = 0x0a;
const LINE_END = Uint8Array.of(10);

/** A number at a place, and the place after it. */
function varint(bytes, at) {
  let number = 0;
  for (let shift = 0; shift < 49; shift += 7) {
    if (at >= bytes.length) break;
    const byte = bytes[at++];
    number += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [number, at];
  }
  throw new Error("a message is malformed");
}

/** The text of a message. Unknown fields are skipped, and the last of several counts. */
export function textOf(message) {
  let text = message.subarray(0, 0);
  for (let at = 0; at < message.length; ) {
    let field, length;
    [field, at] = varint(message, at);
    if (field % 8 === 0) [, at] = varint(message, at);
    else if (field % 8 === 2) [length, at] = varint(message, at);
    else length = { 1: 8, 5: 4 }[field % 8] ?? NaN;
    const end = at + (length ?? 0);
    if (!(end <= message.length)) throw new Error("a message is malformed");
    if (field === JSON_FIELD) text = message.subarray(at, end);
    at = end;
  }
  return text;
}

/** A text as a frame. */
export function frameOf(json) {
  const length = [];
  for (let rest = json.length; ; rest = Math.floor(rest / 128)) {
    length.push(rest < 128 ? rest : (rest % 128) | 0x80);
    if (rest < 128) break;
  }
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(1 + length.length + json.length, 1);
  return Buffer.concat([header, Uint8Array.of(JSON_FIELD, ...length), json]);
}

/** Reads the frames of a server as lines. */
export class FrameReader {
  #pieces = [];
  #count = 0;
  /** The bytes that are still to come of a message that is too long to be kept. */
  #skipped = 0;

  *push(bytes) {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#skipped > 0) {
        const piece = rest.subarray(0, this.#skipped);
        rest = rest.subarray(piece.length);
        this.#skipped -= piece.length;
        yield piece;
        if (this.#skipped === 0) yield LINE_END;
        continue;
      }
      // The header first, then all of the message.
      const wanted = this.#count < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + this.#length();
      const piece = rest.subarray(0, wanted - this.#count);
      rest = rest.subarray(piece.length);
      this.#pieces.push(Buffer.from(piece));
      this.#count += piece.length;
      if (this.#count >= HEADER_BYTES) yield* this.#whole();
    }
  }

  /** The length in a header that is there. */
  #length() {
    if (this.#pieces[0].length < HEADER_BYTES) this.#pieces = [Buffer.concat(this.#pieces)];
    const [header] = this.#pieces;
    if (header[0] !== 0) throw new Error("a message is compressed");
    return header.readUInt32BE(1);
  }

  *#whole() {
    const length = this.#length();
    if (length > MESSAGE_BYTES) this.#skipped = length;
    else if (this.#count < HEADER_BYTES + length) return;
    const pieces = this.#pieces;
    [this.#pieces, this.#count] = [[], 0];
    if (this.#skipped > 0) return;
    yield textOf(Buffer.concat(pieces).subarray(HEADER_BYTES));
    yield LINE_END;
  }
}

/** The refusal in the headers of a response; undefined if the call is accepted. */
function refusal(headers) {
  const status = headers["grpc-status"];
  if (headers[":status"] === 200 && (status === undefined || Number(status) === 0)) return undefined;
  return `${headers["grpc-message"] ?? ""} (status ${status ?? "unknown"})`.trim();
}

/** The headers of a call. */
const headersOf = (authorization) => ({
  ":method": "POST",
  ":path": PATH,
  "content-type": "application/grpc",
  te: "trailers",
  authorization,
});

/** The header that proves that the client knows the token, after a first call that exchanges nonces. */
async function proofOver(session, token) {
  const challenged = (resolve, fail) => {
    session.once("error", fail);
    session.once("connect", () => {
      const exchange = new Exchange(token, session.socket);
      const stream = session.request(headersOf(exchange.hello), { endStream: true });
      stream.on("error", fail);
      stream.once("response", (headers) => resolve({ exchange, challenge: headers["www-authenticate"] }));
    });
  };
  const { exchange, challenge } = await inTime(challenged, () => session.destroy());
  try {
    return exchange.answer(challenge);
  } catch (error) {
    session.destroy();
    throw error;
  }
}

async function called({ host, port }, { token, sendToken }) {
  const session = openSession(`http://${host.includes(":") ? `[${host}]` : host}:${port}`);
  const authorization = sendToken ? `Bearer ${token}` : await proofOver(session, token);
  const begin = (resolve, fail) => {
    session.once("error", fail);
    const stream = session.request(headersOf(authorization));
    // Once there is a connection, errors are reported by its end.
    stream.on("error", fail);
    stream.once("close", () => session.close());
    stream.once("response", (headers) => {
      const why = refusal(headers);
      if (why === undefined) resolve(stream);
      else fail(new Error(why));
    });
  };
  return inTime(begin, () => session.destroy());
}

/** Opens a connection: one message per message of a call. Resolves to a function for `connect`. */
export async function openGrpc(place, credentials, address) {
  if (credentials.token === undefined) throw new DialError(`${address} needs a token`, true);
  const stream = await called(place, credentials);
  const send = sender(stream);
  return (receive, ended) => {
    const frames = new FrameReader();
    stream.on("data", (bytes) => {
      try {
        for (const piece of frames.push(bytes)) receive(piece);
      } catch {
        // It breaks the rules: it is no server.
        stream.destroy();
      }
    });
    stream.on("close", ended);
    return { send: (line) => send(frameOf(Buffer.from(line.trimEnd()))), close: () => leave(stream) };
  };
}
