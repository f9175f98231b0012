// Keeps a connection to a server (Node): runs it as a child process or dials its address, again when it ends by itself; or
// uses the two halves of a pipe, once. No child outlives it: a child that does not end with its input is killed with all that it has started.

import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";

import { Backoff } from "./backoff.js";
import { connect } from "./connection.js";
import { dial } from "./dial.js";
import { cannotStart } from "./programs.js";
import { GRACE_MS, leave, sender } from "./sockets.js";

/** The longest line of standard error that is passed on as one. */
const STDERR_CHARACTERS = 64 * 1024;

/** The children that are to be killed if the program ends without stopping them. */
const alive = new Set();
process.on("exit", () => alive.forEach(killTree));
/** The supervisors that do not keep the program from ending. Their servers are stopped when it has nothing left to do. */
const idle = new Set();
process.on("beforeExit", () => idle.forEach((supervisor) => supervisor.stop()));

/** Kills the process group of a child, whether it has ended or not. Only once: later its number may belong to others. */
function killTree(child) {
  if (!alive.delete(child)) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

/** Waits for one of several promises, for some time; without a time, until one is there. */
async function first(promises, milliseconds) {
  let timer;
  const late = new Promise((resolve) => {
    if (milliseconds !== undefined) timer = setTimeout(resolve, milliseconds);
  });
  try {
    await Promise.race([...promises, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Emits `state` with `{state: "stopped" | "starting" | "running"}`, `{state: "restarting", attempt, delayMs}` or
 * `{state: "failed", error, restartInMs}`, and `connection` with a client each time the server is up.
 */
export class Supervisor extends EventEmitter {
  #launch;
  #options;
  #child;
  #client;
  #running;
  #waiting = new Set();
  #isStopping = false;
  #isIdle = false;
  #stopping = new AbortController();
  #stopped = new Promise((resolve) => this.#stopping.signal.addEventListener("abort", resolve));
  state = { state: "stopped" };

  /**
   * @param {{program?: string, args?: string[], env?: Record<string, string>, cwd?: string, onStderr?: (line: string) => void}
   *   | {address: string, token?: string, sendToken?: boolean} | {input: import("node:stream").Readable, output: import("node:stream").Writable}}
   *   [launch] a program, the address of a server that runs already, or a pipe: what the server writes, and what it
   *   reads. `env` is the whole environment, that of this program if it is left out
   * @param {object} [options] those of `connect`
   */
  constructor(launch = {}, options = {}) {
    super();
    [this.#launch, this.#options] = [launch, options];
  }

  /** The process of the server, while there is one. */
  get pid() {
    return this.#child?.pid;
  }

  /** Starts the server, and returns its first client. A start that fails is an error at once, and tried again. */
  start() {
    return this.connection({ isPatient: false });
  }

  /** Waits until the server is up, and takes its connection; each is given out once. */
  connection({ isPatient = true } = {}) {
    this.#running ??= this.#run();
    return new Promise((resolve, reject) => {
      const look = () => {
        const { state, error, restartInMs } = this.state;
        const isOver = (state === "stopped" && this.#isStopping) || (state === "failed" && restartInMs === undefined);
        if (this.#client === undefined && !isOver && (state !== "failed" || isPatient)) return;
        this.#waiting.delete(look);
        const client = this.#client;
        this.#client = undefined;
        if (client) resolve(client);
        else reject(new Error(error ?? "the server is stopped"));
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** Stops the server: ends its input, waits a little, then kills it with all that it has started. */
  async stop() {
    this.#isStopping = true;
    this.ref();
    this.#stopping.abort(new Error("the server is stopped"));
    await this.#running;
    this.#set({ state: "stopped" });
  }

  /** Lets the program end while the server runs; it is stopped then. */
  unref() {
    this.#isIdle = true;
    if (!this.#isStopping) idle.add(this);
    this.#keep();
  }

  /** Keeps the program from ending while the server runs, which is the default. */
  ref() {
    this.#isIdle = false;
    idle.delete(this);
    this.#keep();
  }

  #keep() {
    const child = this.#child;
    const handles = child ? [child, child.stdin, child.stdout, child.stderr] : [];
    for (const handle of handles) this.#isIdle ? handle.unref?.() : handle.ref?.();
  }

  #set(state) {
    this.state = state;
    for (const look of [...this.#waiting]) look();
    this.#tell("state", state);
  }

  #tell(name, value) {
    try {
      this.emit(name, value);
    } catch {
      // A listener that throws must not end the server.
    }
  }

  async #run() {
    const backoff = new Backoff();
    while (!this.#isStopping) {
      this.#set({ state: "starting" });
      const started = performance.now();
      const error = await this.#once();
      if (this.#isStopping) return;
      const isPipe = this.#launch.input !== undefined;
      const next = error?.isFinal || isPipe ? undefined : backoff.next(performance.now() - started);
      if (next === undefined) {
        const end = isPipe ? "the other end of the pipe is gone" : "the server has ended too often";
        this.#set({ state: "failed", error: error?.message ?? end });
        return;
      }
      const { delayMs } = next;
      const failed = { state: "failed", error: error?.message, restartInMs: delayMs };
      this.#set(error === undefined ? { state: "restarting", ...next } : failed);
      await first([this.#stopped], delayMs);
    }
  }

  /** Connects to the server once, and stays connected to the end; returns the reason if that failed. */
  async #once() {
    const { address, input } = this.#launch;
    if (address === undefined && input === undefined) return this.#runOnce();
    const { client, error } = await this.#unlessStopped(address === undefined ? this.#usePipe() : this.#dial());
    if (client === undefined) return error;
    this.#give(client);
    await first([client.closed, this.#stopped]);
    this.#client = undefined;
    client.close();
    await first([client.closed], GRACE_MS);
  }

  #dial() {
    const { address, token, sendToken } = this.#launch;
    return dial(address, { ...this.#options, token, sendToken, signal: this.#stopping.signal });
  }

  #usePipe() {
    const { input, output } = this.#launch;
    const attach = (receive, ended) => {
      input.on("data", receive);
      input.once("close", ended);
      input.once("end", ended);
      for (const half of [input, output]) half.on("error", ended);
      return { send: sender(output), close: () => leave(output) };
    };
    return connect(attach, { ...this.#options, signal: this.#stopping.signal });
  }

  /** The client of an attempt to connect, or its error; neither if the supervisor is stopped meanwhile. */
  #unlessStopped(connecting) {
    const outcome = connecting.then(
      (client) => ({ client }),
      (error) => ({ error }),
    );
    return Promise.race([outcome, this.#stopped.then(() => ({}))]);
  }

  async #runOnce() {
    const { program = "codex", args = ["app-server"], env, cwd, onStderr = () => {} } = this.#launch;
    let child;
    try {
      child = spawn(program, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    } catch (error) {
      return cannotStart(program, cwd, error);
    }
    this.#child = child;
    this.#keep();
    const exited = new Promise((resolve) => child.once("exit", resolve));
    const closed = new Promise((resolve) => child.once("close", resolve));
    const failed = new Promise((resolve) => child.once("error", resolve));
    if (child.pid !== undefined) alive.add(child);
    // A server that is gone while it is written to is reported by its end.
    child.stdin.on("error", () => {});
    passOn(child.stderr, onStderr);
    try {
      return await this.#connected(child, program, exited, failed);
    } finally {
      this.#client = undefined;
      this.#child = undefined;
      killTree(child);
      // All that it has written is read before the next one starts.
      if (child.pid !== undefined) await first([closed], GRACE_MS);
    }
  }

  async #connected(child, program, exited, failed) {
    const connecting = connect((receive, ended) => attach(child, receive, ended), this.#options);
    const named = connecting.catch((error) => {
      throw new Error(`the handshake with ${program} has failed: ${error.message}`);
    });
    const missing = failed.then((error) => ({ error: cannotStart(program, this.#launch.cwd, error) }));
    const { client, error } = await Promise.race([missing, this.#unlessStopped(named)]);
    if (client) {
      this.#give(client);
      // A connection that was given up, because of noise, ends its server too.
      await first([exited, this.#stopped, client.closed]);
    }
    child.stdin.end();
    if (this.#isStopping || client?.isClosed) await first([exited, failed], GRACE_MS);
    return error;
  }

  /** Hands out a connection. */
  #give(client) {
    this.#client = client;
    this.#set({ state: "running" });
    this.#tell("connection", client);
  }
}

function attach(child, receive, ended) {
  child.stdout.on("data", receive);
  child.stdout.on("end", ended);
  child.once("error", ended);
  return { send: sender(child.stdin), close: () => child.stdin.end() };
}

/** Passes on lines, within a bound; a sink that throws loses its line. */
function passOn(stream, take) {
  let rest = "";
  const give = (line) => {
    try {
      take(line);
    } catch {
      // The server goes on without it.
    }
  };
  stream.setEncoding("utf8");
  stream.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    if (rest.length >= STDERR_CHARACTERS) [lines[lines.length], rest] = [rest, ""];
    lines.forEach(give);
  });
  stream.on("end", () => rest && give(rest));
}
