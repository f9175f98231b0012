// Connects to a server that runs already, at an address that it listens on (Node).

import { stat } from "node:fs/promises";

import { DialError, addressOf } from "./address.js";
import { connect } from "./connection.js";
import { openGrpc } from "./grpc.js";
import { inTime, leave, opened, sender } from "./sockets.js";
import { openWebSocket } from "./websocket.js";

/** The longest answer to a token. */
const ANSWER_BYTES = 4096;

/** A socket that carries lines, and what it has sent already, as a function for `connect`. */
function lines(socket, early = new Uint8Array()) {
  return (receive, ended) => {
    if (early.length > 0) receive(early);
    socket.on("data", receive);
    socket.on("close", ended);
    socket.resume();
    return { send: sender(socket), close: () => leave(socket) };
  };
}

async function openUnix({ path }) {
  const { uid } = await stat(path);
  if (![0, process.geteuid?.() ?? uid].includes(uid)) throw new Error("it belongs to another user");
  return lines(await opened({ path }));
}

/** Presents the token, which is the first line over TCP. */
async function openTcp(place, token, address) {
  if (token === undefined) throw new DialError(`${address} needs a token`, true);
  const socket = await opened(place);
  let seen = Buffer.alloc(0);
  let take, lost;
  const begin = (resolve, fail) => {
    lost = () => fail(new Error("it has hung up"));
    take = (bytes) => {
      seen = Buffer.concat([seen, bytes]);
      const cut = seen.indexOf(10);
      if (cut >= 0) resolve(cut);
      else if (seen.length > ANSWER_BYTES) fail(new Error("it is no server"));
    };
    socket.on("data", take);
    socket.once("close", lost);
    socket.write(`${JSON.stringify({ id: 0, method: "authenticate", params: { token } })}\n`);
  };
  const cut = await inTime(begin, () => socket.destroy());
  // The rest belongs to the connection, which begins to read later.
  socket.pause();
  socket.off("data", take);
  socket.off("close", lost);
  const why = refusal(seen.subarray(0, cut));
  if (why === undefined) return lines(socket, seen.subarray(cut + 1));
  socket.destroy();
  throw new Error(why);
}

/** The reason in the answer to a token; undefined if it is accepted. */
function refusal(line) {
  try {
    const answer = JSON.parse(line.toString());
    return answer?.result === undefined ? String(answer?.error?.message ?? "it is no server") : undefined;
  } catch {
    return "it is no server";
  }
}

const OPENERS = { unix: openUnix, tcp: openTcp, ws: openWebSocket, grpc: openGrpc };

/**
 * Connects to `unix:///PATH`, to `unix://`, which is the socket in `CODEX_HOME`, or with a token to `ws://IP:PORT`,
 * `tcp://IP:PORT` or `grpc://IP:PORT`.
 * @param {string} address
 * @param {object} [options] those of `connect`, and `token`
 */
export async function dial(address, { token, ...options } = {}) {
  const place = addressOf(address);
  let attach;
  try {
    attach = await OPENERS[place.scheme](place, token, address);
  } catch (error) {
    throw error instanceof DialError ? error : new DialError(`cannot connect to ${address}: ${error.message}`);
  }
  return connect(attach, options);
}
