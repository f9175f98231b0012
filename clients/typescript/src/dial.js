// Connects to a server that runs already, at an address that it listens on (Node).

import { stat } from "node:fs/promises";

import { DialError, addressOf } from "./address.js";
import { connect } from "./connection.js";
import { openGrpc } from "./grpc.js";
import { Exchange } from "./proof.js";
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

/** Authenticates with the first lines over TCP. */
async function openTcp(place, { token, sendToken }, address) {
  if (token === undefined) throw new DialError(`${address} needs a token`, true);
  const socket = await opened(place);
  if (sendToken) return lines(socket, (await exchanged(socket, { token })).rest);
  const exchange = new Exchange(token, socket);
  const { nonce, address: reached } = exchange;
  const { result } = await exchanged(socket, { nonce, address: reached });
  try {
    const proof = exchange.prove(result.nonce, result.proof);
    return lines(socket, (await exchanged(socket, { proof })).rest);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Sends a line; resolves to the result of its answer, and to what came after it. */
async function exchanged(socket, params) {
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
    socket.resume();
    socket.write(`${JSON.stringify({ id: 0, method: "authenticate", params })}\n`);
  };
  const cut = await inTime(begin, () => socket.destroy());
  // The rest belongs to the connection, which begins to read later.
  socket.pause();
  socket.off("data", take);
  socket.off("close", lost);
  const answer = read(seen.subarray(0, cut));
  if (answer?.result !== undefined) return { result: answer.result ?? {}, rest: seen.subarray(cut + 1) };
  socket.destroy();
  throw new Error(String(answer?.error?.message ?? "it is no server"));
}

function read(line) {
  try {
    return JSON.parse(line.toString());
  } catch {
    return undefined;
  }
}

const OPENERS = { unix: openUnix, tcp: openTcp, ws: openWebSocket, grpc: openGrpc };

/**
 * Connects to `unix:///PATH`, to `unix://`, which is the socket in `CODEX_HOME`, or with a token to `ws://IP:PORT`,
 * `tcp://IP:PORT` or `grpc://IP:PORT`. Both sides prove that they know the token; with `sendToken` it is sent instead, as
 * to a server behind a forwarded port.
 * @param {string} address
 * @param {object} [options] those of `connect`, `token`, and `sendToken`
 */
export async function dial(address, { token, sendToken = false, ...options } = {}) {
  const place = addressOf(address);
  let attach;
  try {
    attach = await OPENERS[place.scheme](place, { token, sendToken }, address);
  } catch (error) {
    throw error instanceof DialError ? error : new DialError(`cannot connect to ${address}: ${error.message}`);
  }
  return connect(attach, options);
}
