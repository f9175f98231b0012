// Runs a server as a child process (Node), and starts it again when it ends on its own. No child outlives it: a child
// that does not end with its input is killed with all that it has started.

import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";

import { Backoff } from "./backoff.js";
import { connect } from "./connection.js";

const GRACE_MS = 5000;
const STDERR_CHARACTERS = 64 * 1024;

/** Kills the process group of a child; it may have ended already. */
function killTree(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

/**
 * Emits `state` with `{state: "stopped" | "starting" | "running"}`, `{state: "restarting", attempt, delayMs}` or
 * `{state: "failed", error, restartInMs}`, and `connection` with a client each time the server is up.
 */
export class Supervisor extends EventEmitter {
  #launch;
  #options;
  #backoff = new Backoff();
  #child;
  #timer;
  #stopping = false;
  #exited = Promise.resolve();
  #onExit = () => this.#child && killTree(this.#child);
  state = { state: "stopped" };

  /**
   * @param {{program?: string, args?: string[], env?: Record<string, string>, cwd?: string, onStderr?: (line: string) => void}} [launch]
   * @param {object} [options] those of `connect`
   */
  constructor(launch = {}, options = {}) {
    super();
    [this.#launch, this.#options] = [launch, options];
    process.on("exit", this.#onExit);
  }

  /** Starts the server, and returns the first client. */
  async start() {
    const started = Date.now();
    this.#set({ state: "starting" });
    let client;
    try {
      client = await this.#connected(started);
    } catch (error) {
      this.#killed();
      this.#again(started, error.message);
      throw error;
    }
    this.#set({ state: "running" });
    this.emit("connection", client);
    return client;
  }

  /** Stops the server: ends its input, waits a little, then kills it with all that it has started. */
  async stop() {
    this.#stopping = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child) {
      child.stdin.end();
      const timer = setTimeout(() => killTree(child), GRACE_MS);
      await this.#exited;
      clearTimeout(timer);
    }
    process.off("exit", this.#onExit);
    this.#set({ state: "stopped" });
  }

  #set(state) {
    this.state = state;
    this.emit("state", state);
  }

  #killed() {
    if (this.#child) killTree(this.#child);
  }

  async #connected(started) {
    const { program = "codex", args = ["app-server"], env = {}, cwd, onStderr = () => {} } = this.#launch;
    const stdio = ["pipe", "pipe", "pipe"];
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio, detached: true });
    this.#child = child;
    let isUp = false;
    // A server that goes away while it is written to is reported by its end.
    child.stdin.on("error", () => {});
    passOn(child.stderr, onStderr);
    const failure = new Promise((_, reject) => {
      child.once("error", (error) => reject(new Error(`cannot start ${program}: ${error.message}`)));
    });
    this.#exited = new Promise((resolve) => {
      child.once("close", resolve);
      child.once("error", resolve);
    }).then(() => {
      if (this.#child === child) this.#child = undefined;
      if (child.pid !== undefined) killTree(child);
      if (isUp && !this.#stopping) this.#again(started, undefined);
    });
    const connecting = connect((receive, ended) => {
      child.stdout.on("data", receive);
      child.stdout.on("end", ended);
      child.once("error", ended);
      return { send: (line) => child.stdin.write(line), close: () => child.stdin.end() };
    }, this.#options);
    const client = await Promise.race([connecting, failure]);
    isUp = true;
    return client;
  }

  #again(started, error) {
    const next = this.#stopping ? undefined : this.#backoff.next(Date.now() - started);
    if (next === undefined) {
      if (!this.#stopping) this.#set({ state: "failed", error: error ?? "the server has ended too often" });
      return;
    }
    this.#set(error === undefined ? { state: "restarting", ...next } : { state: "failed", error, restartInMs: next.delayMs });
    this.#timer = setTimeout(() => this.start().catch(() => {}), next.delayMs);
  }
}

function passOn(stream, take) {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop().slice(-STDERR_CHARACTERS);
    lines.forEach(take);
  });
}
