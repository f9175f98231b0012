// WebSocket (RFC 6455) as a client, with the token in a header (Node). Browsers have their own: see `connectWebSocket`.

import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";

import { DialError } from "./address.js";
import { Exchange } from "./proof.js";
import { inTime, leave, opened, sender } from "./sockets.js";

const KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const [CONTINUATION, TEXT, CLOSE, PING, PONG] = [0, 1, 8, 9, 10];
/** The longest payload of a frame that is no part of a message. */
const CONTROL_BYTES = 125;
/** The longest reason of a refusal that is read. */
const REASON_BYTES = 4096;
const NOTHING = Buffer.alloc(0);
const LINE_END = Uint8Array.of(10);

/**
 * Reads the frames of a server. A message comes in pieces, `{type: "text", bytes, isEnd}`, so that a long one is not kept
 * here; `{type: "ping", bytes}` and `{type: "close", bytes}` come whole. Bytes that break the rules are an error.
 */
export class FrameReader {
  #head = NOTHING;
  #frame;
  #isInMessage = false;

  *push(bytes) {
    let rest = this.#head.length > 0 ? Buffer.concat([this.#head, bytes]) : bytes;
    this.#head = NOTHING;
    for (;;) {
      this.#frame ??= this.#header(rest);
      const frame = this.#frame;
      if (frame === undefined) {
        this.#head = Buffer.from(rest);
        return;
      }
      rest = rest.subarray(frame.size);
      const piece = rest.subarray(0, frame.left);
      rest = rest.subarray(piece.length);
      [frame.size, frame.left] = [0, frame.left - piece.length];
      if (frame.opcode <= TEXT) yield { type: "text", bytes: piece, isEnd: frame.left === 0 && frame.isLast };
      else frame.pieces.push(Buffer.from(piece));
      if (frame.left > 0) return;
      this.#frame = undefined;
      const type = { [PING]: "ping", [CLOSE]: "close" }[frame.opcode];
      if (type) yield { type, bytes: Buffer.concat(frame.pieces) };
    }
  }

  /** The next frame, without its payload; undefined if its header is not complete. */
  #header(bytes) {
    if (bytes.length < 2) return undefined;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const [opcode, isLast, short] = [bytes[0] & 15, bytes[0] >= 128, bytes[1] & 127];
    if ((bytes[0] & 0x70) !== 0) throw new Error("a frame uses an extension");
    if (bytes[1] >= 128) throw new Error("a frame of the server is masked");
    const size = { 126: 4, 127: 10 }[short] ?? 2;
    if (bytes.length < size) return undefined;
    const left = size === 2 ? short : size === 4 ? view.getUint16(2) : Number(view.getBigUint64(2));
    if (!Number.isSafeInteger(left)) throw new Error("a frame is too long");
    this.#check(opcode, isLast, left);
    return { size, opcode, isLast, left, pieces: [] };
  }

  #check(opcode, isLast, length) {
    if ([CLOSE, PING, PONG].includes(opcode)) {
      if (!isLast || length > CONTROL_BYTES) throw new Error("a control frame is too long or in parts");
      return;
    }
    if (opcode !== TEXT && opcode !== CONTINUATION) throw new Error("a frame is neither text nor control");
    if (this.#isInMessage !== (opcode === CONTINUATION)) throw new Error("the parts of messages are mixed");
    this.#isInMessage = !isLast;
  }
}

/** A whole frame of a client, whose payload is masked. */
export function frameOf(opcode, payload) {
  const { length } = payload;
  const size = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.alloc(size + 4 + length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (size === 2 ? length : size === 4 ? 126 : 127);
  if (size === 4) frame.writeUInt16BE(length, 2);
  if (size === 10) frame.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomBytes(4);
  mask.copy(frame, size);
  for (let at = 0; at < length; at += 1) frame[size + 4 + at] = payload[at] ^ mask[at & 3];
  return frame;
}

/** The header that proves that the client knows the token, after a first request that exchanges nonces. */
async function proofOver(socket, token) {
  const exchange = new Exchange(token, socket);
  let head = "";
  let take, lost;
  const begin = (resolve, fail) => {
    lost = () => fail(new Error("it has hung up"));
    take = (bytes) => {
      head += bytes.toString("latin1");
      if (head.includes("\r\n\r\n")) resolve();
      else if (head.length > REASON_BYTES) fail(new Error("it is no server"));
    };
    socket.on("data", take);
    socket.once("close", lost);
    const headers = `Host: ${exchange.address}\r\nAuthorization: ${exchange.hello}\r\n`;
    socket.write(`GET / HTTP/1.1\r\n${headers}\r\n`);
  };
  await inTime(begin, () => socket.destroy());
  // It goes on reading for the next request: until that is sent, the server says nothing.
  socket.off("data", take);
  socket.off("close", lost);
  const fields = head.split("\r\n").map((line) => line.split(/:\s*(.*)/s, 2));
  try {
    return exchange.answer(fields.find(([name]) => name.toLowerCase() === "www-authenticate")?.[1]);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Asks a server to speak WebSocket; resolves to its socket, and to what it has sent already. */
async function upgraded({ host, port }, { token, sendToken }) {
  const open = sendToken ? undefined : await opened({ host, port });
  const authorization = sendToken ? `Bearer ${token}` : await proofOver(open, token);
  const key = randomBytes(16).toString("base64");
  const headers = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Key": key,
    "Sec-WebSocket-Version": "13",
    Authorization: authorization,
  };
  const connection = open ? { createConnection: () => open } : { agent: false };
  const asking = request({ host, port, headers, ...connection });
  const begin = (resolve, fail) => {
    asking.once("upgrade", ({ headers: answer }, socket, early) => {
      const expected = createHash("sha1").update(key + KEY_SUFFIX).digest("base64");
      if (answer["sec-websocket-accept"] === expected) return resolve({ socket, early });
      socket.destroy();
      fail(new Error("it is no server"));
    });
    asking.once("response", (response) => {
      let reason = "";
      const refuse = () => fail(new Error(`${response.statusCode} ${response.statusMessage} ${reason}`.trim()));
      response.setEncoding("utf8");
      response.on("data", (text) => (reason = (reason + text).slice(0, REASON_BYTES).trim()));
      response.once("close", refuse);
    });
    // Once there is a connection, errors are reported by its end.
    asking.on("error", fail);
    asking.end();
  };
  return inTime(begin, () => asking.destroy());
}

/** Opens a connection: one message per text frame. Resolves to a function for `connect`. */
export async function openWebSocket(place, credentials, address) {
  if (credentials.token === undefined) throw new DialError(`${address} needs a token`, true);
  const { socket, early } = await upgraded(place, credentials);
  const send = sender(socket);
  const frames = new FrameReader();
  const take = (bytes, receive) => {
    for (const frame of frames.push(bytes)) {
      if (frame.type === "ping") send(frameOf(PONG, frame.bytes));
      else if (frame.type === "close") leave(socket, frameOf(CLOSE, frame.bytes));
      else receive(frame.bytes);
      if (frame.isEnd) receive(LINE_END);
    }
  };
  return (receive, ended) => {
    const takeOrLeave = (bytes) => {
      try {
        take(bytes, receive);
      } catch {
        // It breaks the rules, or does not read: it is no server.
        socket.destroy();
      }
    };
    socket.on("error", () => {});
    socket.on("close", ended);
    if (early.length > 0) takeOrLeave(early);
    socket.on("data", takeOrLeave);
    return {
      send: (line) => send(frameOf(TEXT, Buffer.from(line.trimEnd()))),
      close: () => leave(socket, frameOf(CLOSE, Uint8Array.of(0x03, 0xe8))),
    };
  };
}
