// Connects to a server that runs already, at an address that it listens on (Node).

import { connect as openSocket } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";

import { connect } from "./connection.js";

/** The time limit to reach the server, in milliseconds. */
const DEADLINE_MS = 10_000;

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

/**
 * Connects to `unix:///PATH`, to `unix://`, which is the socket in `CODEX_HOME`, or to `tcp://IP:PORT` with its token.
 * @param {string} address
 * @param {object} [options] those of `connect`, and `token`
 */
export async function dial(address, { token, ...options } = {}) {
  let socket;
  try {
    socket = await opened(placeOf(address));
  } catch (error) {
    throw new Error(`cannot connect to ${address}: ${error.message}`);
  }
  if (token !== undefined) socket.write(`${token}\n`);
  return connect((receive, ended) => {
    socket.on("data", receive);
    socket.on("close", ended);
    return { send: (line) => socket.write(line), close: () => socket.end() };
  }, options);
}
