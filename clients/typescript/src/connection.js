// JSON-RPC with one server over any pair of streams of bytes. There is no client before the handshake is complete, so
// no call can come too early.

import { LONGEST_MS, answer, encode } from "./approvals.js";
import { request, response } from "./router.js";
import { byteLength, threadId } from "./shapes.js";
import { Transcript, eventOf } from "./transcript.js";
import { VERSION } from "./version.js";

const NOISE_BYTES = 64 * 1024;
const MOST_QUESTIONS = 256;
const OVERLOADED = -32001;
const RETRIES_MS = [100, 300, 1000, 3000];
const DELTA_BYTES = 4 * 1024 * 1024;
const MOST_EVENTS = 10_000;
const LOOK_BACK = 32;

/** A call that has no result. */
export class CallError extends Error {
  /** @param {string} method @param {string} message @param {number} [code] */
  constructor(method, message, code) {
    super(`${method}: ${message}${code === undefined ? "" : ` (code ${code})`}`);
    this.name = "CallError";
    this.method = method;
    this.code = code;
  }
}

const isSamePiece = (one, other) =>
  one.item === other.item &&
  one.part === other.part &&
  one.index === other.index &&
  one.teller === other.teller &&
  one.turn === other.turn &&
  one.thread === other.thread;

/** Whether an event reports again everything that another one reported. */
const replaces = (old, event) =>
  old?.type === event.type &&
  (event.type === "rateLimits" ||
    (event.type === "usage" && old.thread === event.thread) ||
    (["diff", "plan"].includes(event.type) && old.thread === event.thread && old.turn === event.turn));

/**
 * Events that wait for a program to read them. Deltas that wait are merged, and beyond a bound left out; the end of
 * their item carries the whole text. Nothing else of a thread is left out.
 */
export class Events {
  #events = [];
  #head = 0;
  #deltaBytes = 0;
  #leftOut = 0;
  #closed = false;
  #waiting = [];

  push(event) {
    if (event.type === "delta") {
      const bytes = byteLength(event.text);
      if (this.#deltaBytes + bytes > DELTA_BYTES) {
        this.#leftOut += 1;
        return;
      }
      this.#deltaBytes += bytes;
      const end = Math.max(this.#head, this.#events.length - LOOK_BACK);
      for (let at = this.#events.length - 1; at >= end && this.#events[at].type === "delta"; at -= 1) {
        if (isSamePiece(this.#events[at], event)) {
          this.#events[at].text += event.text;
          return;
        }
      }
      this.#events.push({ ...event });
    } else if (["other", "unknown", "note"].includes(event.type) && this.#events.length - this.#head >= MOST_EVENTS) {
      this.#leftOut += 1;
    } else if (this.#events.length > this.#head && replaces(this.#events.at(-1), event)) {
      this.#events[this.#events.length - 1] = event;
    } else {
      this.#events.push(event);
    }
    this.#wake();
  }

  close() {
    this.#closed = true;
    this.#wake();
  }

  #wake() {
    while (this.#waiting.length > 0) {
      const next = this.#pop();
      if (next === undefined && !this.#closed) return;
      this.#waiting.shift()(next === undefined ? { done: true, value: undefined } : { done: false, value: next });
    }
  }

  #pop() {
    if (this.#head < this.#events.length) {
      const event = this.#events[this.#head];
      this.#events[this.#head] = undefined;
      this.#head += 1;
      if (this.#head > 1024 && this.#head * 2 > this.#events.length) {
        this.#events = this.#events.slice(this.#head);
        this.#head = 0;
      }
      if (event.type === "delta") this.#deltaBytes -= byteLength(event.text);
      return event;
    }
    if (this.#leftOut === 0) return undefined;
    const note = { type: "note", text: `${this.#leftOut} events were left out: they were not read` };
    this.#leftOut = 0;
    return note;
  }

  next() {
    const event = this.#pop();
    if (event !== undefined) return Promise.resolve({ done: false, value: event });
    if (this.#closed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return() {
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

/** Waits for some time; a signal ends the wait with its reason. */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** A connection after its handshake. */
export class Client {
  #send;
  #options;
  #pending = new Map();
  #nextId = 1;
  #noise = 0;
  /** The questions that have no answer yet. */
  #questions = new Set();
  #closed = false;
  #transcript = new Transcript();
  #close;
  #tellClosed;
  /** Resolves when the connection is closed, by either side. */
  closed = new Promise((resolve) => (this.#tellClosed = resolve));
  events = new Events();
  /** What the server said about itself. */
  server = null;

  /** Use `connect`. */
  constructor(send, close, options) {
    [this.#send, this.#close, this.#options] = [send, close, options];
  }

  get isClosed() {
    return this.#closed;
  }

  /** Ends the connection. */
  close() {
    this.#close();
  }

  /**
   * Calls a method. A server that is overloaded is asked again, within the deadline.
   * @param {string} method
   * @param {unknown} [params]
   * @param {{signal?: AbortSignal, deadlineMs?: number}} [options]
   */
  async call(method, params = {}, { signal, deadlineMs = this.#options.deadlineMs ?? 60_000 } = {}) {
    const deadline = Date.now() + deadlineMs;
    const late = new CallError(method, `no answer within ${deadlineMs} ms`);
    for (let attempt = 0; ; attempt += 1) {
      const { result, error } = await this.#once(method, params, late, deadline - Date.now(), signal);
      if (error === null) return result;
      const wait = (RETRIES_MS[attempt] ?? Infinity) * (0.75 + Math.random() / 4);
      if (error.code !== OVERLOADED || Date.now() + wait >= deadline) {
        const { code, message = "" } = error;
        const told = typeof message === "string" ? message : JSON.stringify(message);
        throw new CallError(method, told, Number.isInteger(code) ? code : 0);
      }
      await pause(wait, signal);
    }
  }

  #once(method, params, late, waitMs, signal) {
    if (this.#closed) return Promise.reject(new CallError(method, "the connection is closed"));
    signal?.throwIfAborted();
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const end = (finish, value) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this.#pending.delete(id);
        finish(value);
      };
      const abort = () => end(reject, signal.reason);
      const timer = setTimeout(() => end(reject, late), Math.min(waitMs, LONGEST_MS));
      signal?.addEventListener("abort", abort);
      const closed = () => end(reject, new CallError(method, "the connection is closed"));
      this.#pending.set(id, { answer: (message) => end(resolve, message), closed });
      try {
        this.#send(JSON.stringify({ id, method, params }) + "\n");
      } catch (error) {
        end(reject, new CallError(method, `cannot be sent: ${error.message}`));
      }
    });
  }

  /** Tells the server something. */
  notify(method) {
    this.#send(JSON.stringify({ method }) + "\n");
  }

  /** Takes bytes of the server. */
  receive(bytes) {
    for (const message of this.#transcript.push(bytes)) {
      if (this.#closed) return;
      this.#take(message);
    }
  }

  /** Takes the end of the server: all calls that wait fail. */
  ended() {
    if (this.#closed) return;
    for (const message of this.#transcript.finish()) this.#take(message);
    this.#shut();
  }

  #shut() {
    if (this.#closed) return;
    this.#closed = true;
    for (const { closed } of [...this.#pending.values()]) closed();
    this.events.close();
    this.#tellClosed();
  }

  #take(message) {
    if (message.type === "response") {
      const event = message.error === null ? response(message.result) : undefined;
      if (event) this.events.push(event);
      // Numbered events may follow in the same piece of bytes, before the caller has its answer.
      if (typeof message.result?.logId === "string" && event?.type === "thread") {
        this.#options.registry?.subscribed(event.id, message.result);
      }
      const waiting = this.#pending.get(message.id);
      if (waiting) waiting.answer(message);
      else this.events.push({ type: "note", text: `an answer to nobody: ${JSON.stringify(message.id)}` });
    } else if (message.type === "question") {
      this.#ask(message);
    } else {
      // A line that is too long is one note; many lines that are no messages come from no server.
      if (message.type === "noise" && message.bytes <= NOISE_BYTES) this.#noise += message.bytes;
      if (message.event?.type === "resolved") this.#questions.delete(JSON.stringify(message.event.id));
      this.#tell(message);
      if (this.#noise > NOISE_BYTES) this.#giveUp();
    }
  }

  /** Whatever is at the other end is no server: nothing of it is read any more. */
  #giveUp() {
    this.close();
    this.#shut();
  }

  /** Passes on an event, unless its number was reported already; and the end of a turn that nothing else tells. */
  #tell(message) {
    const { registry } = this.#options;
    const { event, seq } = message;
    const thread = seq === undefined ? "" : threadOf(event);
    if (registry !== undefined && thread !== "" && !registry.saw(thread, seq)) {
      this.events.push({ type: "note", text: `event ${seq} of thread ${thread} was reported already` });
      return;
    }
    this.events.push(eventOf(message));
    const end = event === undefined ? undefined : registry?.note(event, seq);
    if (end) this.events.push(end);
  }

  async #ask({ id, method, params }) {
    const key = JSON.stringify(id);
    // One that is open already and asked again has one answer.
    if (this.#questions.has(key)) return;
    const asked = request(id, method, params);
    this.events.push(asked);
    this.#questions.add(key);
    const handler = this.#questions.size > MOST_QUESTIONS ? undefined : this.#options.approvals;
    const { approvalDeadlineMs } = this.#options;
    const { answer: told, note } = await answer({ id, method, params }, handler, approvalDeadlineMs, this.closed);
    if (note) this.events.push({ type: "note", text: note });
    // Somebody else may have answered it.
    if (!this.#questions.delete(key) || this.#closed) return;
    this.#reply(id, method, told);
    this.events.push({ type: "resolved", thread: asked.thread, id });
  }

  #reply(id, method, told) {
    let line;
    try {
      line = JSON.stringify({ id, ...told });
    } catch (error) {
      this.events.push({ type: "note", text: `${method}: the result of the handler is no JSON: ${error.message}` });
      line = JSON.stringify({ id, ...encode(method, undefined) });
    }
    try {
      this.#send(`${line}\n`);
    } catch (error) {
      this.events.push({ type: "note", text: `${method}: the answer cannot be sent: ${error.message}` });
    }
  }
}

/** The thread that an event is about; empty if it is about none. */
function threadOf(event) {
  if (event.type === "other" || event.type === "unknown") return threadId(event.params);
  return (event.type === "thread" ? event.id : event.thread) ?? "";
}

/**
 * Speaks with a server: shakes hands, then hands out the client. `attach` is given the functions that take bytes and
 * the end of the input; it returns the functions that send a line and close the connection. `signal` in the options ends
 * the handshake.
 * @param {(receive: (bytes: Uint8Array) => void, ended: () => void) => {send: (line: string) => void, close: () => void}} attach
 * @param {object} [options]
 */
export async function connect(attach, options = {}) {
  let client;
  const early = [];
  let hasEnded = false;
  const { send, close } = attach(
    (bytes) => (client ? client.receive(bytes) : early.push(bytes)),
    () => (client ? client.ended() : (hasEnded = true)),
  );
  client = new Client(send, close, options);
  for (const bytes of early) client.receive(bytes);
  if (hasEnded) client.ended();
  const { name = "codex-embed", title = name, version = VERSION, experimental = true, signal } = options;
  const params = { clientInfo: { name, title, version }, capabilities: { experimentalApi: experimental } };
  try {
    client.server = await client.call("initialize", params, { signal });
    client.notify("initialized");
  } catch (error) {
    client.close();
    throw error;
  }
  return client;
}

/**
 * Connects to a server over WebSocket, in a browser or in Node.
 * @param {WebSocket} socket
 */
export function connectWebSocket(socket, options) {
  const encoder = new TextEncoder();
  return connect((receive, ended) => {
    const waiting = [];
    socket.addEventListener("open", () => waiting.splice(0).forEach((line) => socket.send(line)));
    socket.addEventListener("message", ({ data }) => receive(encoder.encode(`${data}\n`)));
    socket.addEventListener("close", ended);
    socket.addEventListener("error", ended);
    const send = (line) => (socket.readyState === 0 ? waiting.push(line.trimEnd()) : socket.send(line.trimEnd()));
    return { send, close: () => socket.close() };
  }, options);
}
