// The address of a server, as a URL (Node).

import { isIP } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";

const SCHEMES = ["ws", "tcp", "grpc"];

/** The reason why there is no connection to an address. */
export class DialError extends Error {
  /**
   * @param {string} message
   * @param {boolean} [isFinal] whether another attempt would fail in the same way
   */
  constructor(message, isFinal = false) {
    super(message);
    this.name = "DialError";
    this.isFinal = isFinal;
  }
}

/** An IP address and a port. The one accepted name means this machine, so that no resolver decides who listens. */
function hostOf(text, rest) {
  const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*)):(\d{1,5})\/?$/.exec(rest) ?? [];
  const host = plain === "localhost" ? "127.0.0.1" : (bracketed ?? plain ?? "");
  const isHost = isIP(host) === (bracketed === undefined ? 4 : 6);
  if (!isHost || Number(port) > 65_535) {
    throw new DialError(`${text} does not name an IP address and a port, as in 127.0.0.1:8080`, true);
  }
  return { host, port: Number(port) };
}

/**
 * Reads `unix:///PATH`, `unix://`, which is the socket in `CODEX_HOME`, or `ws://IP:PORT`, `tcp://IP:PORT` or
 * `grpc://IP:PORT`.
 * @param {string} text
 * @returns {{scheme: string, path?: string, host?: string, port?: number}}
 */
export function addressOf(text) {
  const [, scheme, rest] = /^([a-z]+):\/\/(.*)$/s.exec(text) ?? [];
  if (scheme === "unix") {
    if (rest !== "" && !rest.startsWith("/")) {
      const hint = "an absolute one has three slashes, as in unix:///run/codex.sock";
      throw new DialError(`the path in ${text} is not absolute; ${hint}`, true);
    }
    const home = process.env.CODEX_HOME || join(homedir(), ".codex");
    return { scheme, path: rest || join(home, "run", "app-server.sock") };
  }
  if (SCHEMES.includes(scheme)) return { scheme, ...hostOf(text, rest) };
  throw new DialError(
    `${text} is not an address to connect to; use unix://PATH, ws://IP:PORT, tcp://IP:PORT or grpc://IP:PORT`,
    true,
  );
}
