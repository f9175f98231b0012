// Connects to a server that runs already, at an address that it listens on (Node).

import { connect as openSocket } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";

import { connect } from "./connection.js";

/** The time limit to reach the server, in milliseconds. */
const DEADLINE_MS = 10_000;
/** The longest answer to a token. */
const ANSWER_BYTES = 4096;

function placeOf(address) {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === "unix:") {
    const home = process.env.CODEX_HOME ?? join(homedir(), ".codex");
    return { path: decodeURIComponent(url.pathname) || join(home, "run", "app-server.sock") };
  }
  if (url?.protocol === "tcp:" && url.hostname && url.port) {
    return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port) };
  }
  throw new Error("an address begins with unix:// or is tcp://IP:PORT");
}

function opened(place) {
  return new Promise((resolve, reject) => {
    const socket = openSocket(place);
    const timer = setTimeout(() => socket.destroy(new Error("no answer")), DEADLINE_MS);
    socket.once("connect", () => {
      clearTimeout(timer);
      resolve(socket);
    });
    // Once there is a connection, errors are reported by its end.
    socket.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}

/** Presents a token, which is the first line over TCP; resolves to what the server has sent after its answer. */
function authenticated(socket, token) {
  return new Promise((resolve, reject) => {
    let seen = Buffer.alloc(0);
    const end = (finish, value) => {
      clearTimeout(timer);
      socket.off("data", take);
      socket.off("close", lost);
      finish(value);
    };
    const refuse = (why) => {
      end(reject, new Error(why));
      socket.destroy();
    };
    const timer = setTimeout(refuse, DEADLINE_MS, "no answer to the token");
    const lost = () => refuse("it has hung up");
    const take = (bytes) => {
      seen = Buffer.concat([seen, bytes]);
      const cut = seen.indexOf(10);
      if (cut < 0) return seen.length > ANSWER_BYTES ? refuse("it is no server") : undefined;
      let answer;
      try {
        answer = JSON.parse(seen.subarray(0, cut).toString());
      } catch {
        // A line that is no message is no answer either.
      }
      if (answer?.result === undefined) return refuse(answer?.error?.message ?? "it is no server");
      // The rest belongs to the connection, which begins to read later.
      socket.pause();
      end(resolve, seen.subarray(cut + 1));
    };
    socket.on("data", take);
    socket.once("close", lost);
    socket.write(`${JSON.stringify({ id: 0, method: "authenticate", params: { token } })}\n`);
  });
}

/**
 * Connects to `unix:///PATH`, to `unix://`, which is the socket in `CODEX_HOME`, or to `tcp://IP:PORT` with its token.
 * @param {string} address
 * @param {object} [options] those of `connect`, and `token`
 */
export async function dial(address, { token, ...options } = {}) {
  let socket;
  let early = new Uint8Array();
  try {
    socket = await opened(placeOf(address));
    if (token !== undefined) early = await authenticated(socket, token);
  } catch (error) {
    throw new Error(`cannot connect to ${address}: ${error.message}`);
  }
  return connect((receive, ended) => {
    if (early.length > 0) receive(early);
    socket.on("data", receive);
    socket.on("close", ended);
    socket.resume();
    return { send: (line) => socket.write(line), close: () => socket.end() };
  }, options);
}
