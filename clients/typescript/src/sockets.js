// Sockets with limits: of the time to open one, of the bytes that wait in one, and of the time to close one (Node).

import { connect as openSocket } from "node:net";

/** The time limit to reach a server, in milliseconds. */
export const DEADLINE_MS = 10_000;
/** The time limit for a server to end a connection after its input has ended, in milliseconds. */
export const GRACE_MS = 5000;
/** The most bytes that wait for a server that does not read. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;

/**
 * Waits for a result within the time limit to reach a server. `begin` is given the functions that settle it; `abandon` is
 * called if that fails.
 */
export function inTime(begin, abandon) {
  return new Promise((resolve, reject) => {
    const fail = (error) => {
      clearTimeout(timer);
      abandon();
      reject(error);
    };
    const timer = setTimeout(fail, DEADLINE_MS, new Error("no answer"));
    begin((value) => {
      clearTimeout(timer);
      resolve(value);
    }, fail);
  });
}

/** Opens a socket. */
export function opened(place) {
  const socket = openSocket(place);
  const begin = (resolve, fail) => {
    socket.once("connect", () => resolve(socket));
    // Once there is a connection, errors are reported by its end.
    socket.on("error", fail);
    socket.setNoDelay?.(true);
  };
  return inTime(begin, () => socket.destroy());
}

/** A function that writes to a stream, and throws if it does not take what is waiting. */
export function sender(stream) {
  return (data) => {
    if (stream.writableLength > MOST_WAITING_BYTES) throw new Error("the server does not read");
    stream.write(data);
  };
}

/** Ends a stream after some last bytes. One whose other end does not end too is given up after a while. */
export function leave(stream, last) {
  if (!stream.writableEnded) stream.end(last);
  const timer = setTimeout(() => stream.destroy(), GRACE_MS);
  stream.once("close", () => clearTimeout(timer));
}
