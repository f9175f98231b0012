// The conventions of the official SDK: `Codex`, `startThread`, `resumeThread`, `run`, `runStreamed`; and what its users
// ask for: fork, list, delete, goals, approvals. A server that dies is restarted, and its turns report the end that the
// new server knows.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

import { Events } from "./connection.js";
import { TurnEvents, configArgs, defined, inputOf, threadParams } from "./conventions.js";
import { Registry } from "./registry.js";
import { endOf } from "./state.js";
import { Supervisor } from "./supervisor.js";

/** The waits before the attempts to interrupt a turn; some releases refuse the first moments of one. */
const INTERRUPTS_MS = [0, 100, 300, 1000, 3000];

/** The time limit for the end of a turn that was interrupted. */
const END_MS = 5000;

/** The most events that a subscriber may not have finished with; it misses further ones. */
const MOST_UNFINISHED = 1000;

/** The number of turns that are remembered as over. */
const MOST_OVER = 256;

/** A turn that has failed. */
export class TurnError extends Error {
  constructor(message) {
    super(message);
    this.name = "TurnError";
  }
}

/** A promise, with the functions that settle it. */
function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  // Nobody may be waiting for it.
  made.promise.catch(() => {});
  return made;
}

/** A program as this process finds it: the server may get another `PATH`. */
function programPath(name) {
  if (name.includes("/")) return name;
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder || ".", name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // It is not in this folder.
    }
  }
  return name;
}

/** Starts threads on a server that it runs. */
export class Codex {
  #options;
  #supervisor;
  #ready = deferred();
  #hasRun = false;
  #registry = new Registry();
  /** The functions that are called with every event, and how many events each has not finished with. */
  #subscribers = new Map();
  /** The subscribers that have failed before. */
  #failing = new WeakSet();
  #turns = new Set();
  /** The turns that were started by `call` and run, with the functions that let the program end. */
  #started = new Map();
  /** The last turns that are over. */
  #over = new Set();
  #uses = 0;

  /**
   * @param {object} [options] `codexPathOverride`, `baseUrl`, `apiKey`, `env`, `config`, `configOverrides`, `approvals`,
   *   `clientName`, `onStderr`
   */
  constructor(options = {}) {
    this.#options = options;
  }

  /** The client of the protocol, for everything that has no convention. Waits while a server is restarted. */
  async client() {
    // Its user may wait for events alone, so the program stays until `close`.
    this.#use();
    return this.connected();
  }

  /** The connection that is up; one that has ended is replaced by the next. */
  async connected() {
    this.#start();
    for (;;) {
      const client = await this.#ready.promise;
      if (!client.isClosed) return client;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Calls a method while the program waits for it. */
  async call(method, params = {}, options = {}) {
    const end = this.#use();
    try {
      const result = await (await this.connected()).call(method, params, options);
      const { id, status } = result?.turn ?? {};
      if (status === "inProgress" && !this.#over.has(id)) this.#started.set(id, this.#use());
      return result;
    } finally {
      end();
    }
  }

  /** Takes the end of a turn, which may be told before the answer to its start is taken. */
  #endTurn(id) {
    this.#over.add(id);
    if (this.#over.size > MOST_OVER) this.#over.delete(this.#over.values().next().value);
    this.#started.get(id)?.();
    this.#started.delete(id);
  }

  /** Keeps the program from ending, until the function that it returns is called. */
  #use() {
    this.#uses += 1;
    this.#supervisor?.ref();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#uses -= 1;
      if (this.#uses === 0) this.#supervisor?.unref();
    };
  }

  #start() {
    if (this.#supervisor) return;
    const { codexPathOverride = "codex", baseUrl, apiKey, env = process.env } = this.#options;
    const { config = {}, configOverrides = [], approvals, clientName, onStderr } = this.#options;
    const raw = configOverrides.flatMap((override) => ["--config", override]);
    const own = configArgs(defined({ openai_base_url: baseUrl }));
    const launch = {
      program: programPath(codexPathOverride),
      args: [...configArgs(config), ...raw, ...own, "app-server"],
      env: { ...env, ...defined({ CODEX_API_KEY: apiKey }) },
      onStderr,
    };
    this.#supervisor = new Supervisor(launch, defined({ approvals, name: clientName, registry: this.#registry }));
    this.#pump(this.#supervisor);
  }

  /** Passes on the events of each connection in turn. */
  async #pump(supervisor) {
    for (;;) {
      let client;
      try {
        // Nobody waits for a program that is missing; one that has run before may come back.
        client = await supervisor.connection({ isPatient: this.#hasRun });
      } catch (error) {
        this.#fail(error);
        return supervisor.stop();
      }
      this.#hasRun = true;
      this.#recover(client);
      for await (const event of client.events) this.#dispatch(event);
      // Nobody follows their threads, so nothing tells the ends of these turns any more.
      for (const id of [...this.#started.keys()]) this.#endTurn(id);
      this.#ready = deferred();
    }
  }

  async #recover(client) {
    const turnsOf = (thread) => [...this.#turns].filter((turn) => turn.thread === thread);
    try {
      const recovered = (thread, answer) => turnsOf(thread).forEach((turn) => turn.recover(answer));
      const refused = await this.#registry.recover(client, recovered);
      for (const [thread, reason] of refused) turnsOf(thread).forEach((turn) => turn.lose(reason));
      this.#ready.resolve(client);
    } catch (error) {
      // A connection that is closed again is followed by another one.
      if (!client.isClosed) this.#fail(error);
    }
  }

  #fail(error) {
    for (const turn of [...this.#turns]) turn.lose(error.message);
    this.#ready.reject(error);
  }

  #dispatch(event) {
    for (const turn of [...this.#turns]) turn.take(event);
    for (const take of [...this.#subscribers.keys()]) this.#tell(take, event);
    if (event.type === "turnEnded") this.#endTurn(event.turn);
  }

  /** Tells a subscriber of an event. One that fails misses the event; the others do not. */
  #tell(take, event) {
    const failed = (error) => this.#note(take, error);
    const count = (change) => {
      if (this.#subscribers.has(take)) this.#subscribers.set(take, this.#subscribers.get(take) + change);
    };
    if (this.#subscribers.get(take) >= MOST_UNFINISHED) return failed("it is too slow");
    try {
      const taken = take(event);
      if (typeof taken?.then !== "function") return;
      count(1);
      taken.then(undefined, failed).finally(() => count(-1));
    } catch (error) {
      failed(error);
    }
  }

  /** Tells the others of a subscriber that has failed, once. */
  #note(take, error) {
    if (this.#failing.has(take)) return;
    this.#failing.add(take);
    const text = `a subscriber has failed: ${error?.message ?? error}`;
    for (const other of [...this.#subscribers.keys()]) if (other !== take) this.#tell(other, { type: "note", text });
  }

  /** Gives a turn the events of its thread; returns a function that ends it. */
  follow(turn) {
    this.#turns.add(turn);
    this.#registry.follow(turn.thread);
    const end = this.#use();
    return () => {
      this.#turns.delete(turn);
      end();
    };
  }

  /**
   * Has a function called with every event; returns one that ends it. If it fails, the others get a note, once.
   * @param {(event: object) => unknown} take
   */
  subscribe(take) {
    this.#subscribers.set(take, 0);
    return () => this.#subscribers.delete(take);
  }

  startThread(options = {}) {
    return new Thread(this, options, undefined);
  }

  resumeThread(id, options = {}) {
    return new Thread(this, options, id);
  }

  /** A copy of a thread, which continues by itself. */
  async forkThread(id, options = {}) {
    const { thread } = await this.call("thread/fork", { threadId: id, ...threadParams(options) });
    return new Thread(this, options, thread.id, true);
  }

  /** A page of threads: `{data, nextCursor}`. */
  listThreads(params = {}) {
    return this.call("thread/list", params);
  }

  async archiveThread(id) {
    await this.call("thread/archive", { threadId: id });
    this.#registry.forget(id);
  }

  async deleteThread(id) {
    await this.call("thread/delete", { threadId: id });
    this.#registry.forget(id);
  }

  /** Gives a thread a goal, which it pursues in turns of its own. */
  async setGoal(id, goal) {
    return (await this.call("thread/goal/set", { threadId: id, ...goal })).goal;
  }

  async getGoal(id) {
    return (await this.call("thread/goal/get", { threadId: id })).goal ?? null;
  }

  async clearGoal(id) {
    await this.call("thread/goal/clear", { threadId: id });
  }

  /** The process of the server, while there is one. */
  get pid() {
    return this.#supervisor?.pid;
  }

  /** Ends the server. A program that does not call it ends all the same, once no turn runs. */
  async close() {
    await this.#supervisor?.stop();
  }
}

/** A turn that runs, with the events that it has not handed out yet. */
class RunningTurn {
  events = new Events();
  id = "";

  constructor(thread) {
    this.thread = thread;
  }

  take(event) {
    if ((event.thread ?? this.thread) === this.thread) this.events.push(event);
  }

  /** Ends the turn: its server is gone for good, or does not know it any more. */
  lose(reason) {
    const place = { thread: this.thread, turn: this.id };
    this.events.push({ type: "turnEnded", ...place, status: "failed", error: { message: reason } });
  }

  /**
   * After a break: the end of the turn, and items that were completed meanwhile, are in the thread if the server does not
   * send them again.
   */
  recover(answer) {
    // A turn without a name is still to be sent, or sent again.
    if (this.id === "" || answer?.reset !== true) return;
    const known = (answer.thread?.turns ?? []).find((turn) => turn?.id === this.id);
    if (known === undefined) return this.lose("the server does not know the turn any more");
    const place = { thread: this.thread, turn: this.id };
    const isOver = known.status !== "inProgress";
    for (const item of known.items ?? []) {
      const isComplete = isOver || ![undefined, null, "inProgress"].includes(item.status);
      if (isComplete) this.events.push({ type: "itemCompleted", ...place, item });
    }
    if (isOver) this.events.push({ type: "turnEnded", ...place, status: endOf(known), error: known.error ?? null });
  }
}

/** A thread. Its id is known once its first turn has started. */
export class Thread {
  #codex;
  #options;
  #id;
  #isOpen;
  #last = Promise.resolve();

  constructor(codex, options, id, isOpen = false) {
    [this.#codex, this.#options, this.#id, this.#isOpen] = [codex, options, id, isOpen];
  }

  get id() {
    return this.#id ?? null;
  }

  async #open() {
    if (this.#isOpen) return;
    const params = threadParams(this.#options);
    const { thread } = await (this.#id === undefined
      ? this.#codex.call("thread/start", params)
      : this.#codex.call("thread/resume", { threadId: this.#id, ...params }));
    [this.#id, this.#isOpen] = [thread.id, true];
  }

  /** Runs a turn to its end: `{items, finalResponse, usage}`. */
  async run(input, options = {}) {
    const { events } = await this.runStreamed(input, options);
    const result = { items: [], finalResponse: "", usage: null };
    for await (const event of events) {
      if (event.type === "item.completed") {
        result.items.push(event.item);
        if (event.item.type === "agent_message") result.finalResponse = event.item.text;
      } else if (event.type === "turn.completed") {
        result.usage = event.usage;
      } else if (event.type === "turn.failed") {
        throw new TurnError(event.error.message);
      }
    }
    return result;
  }

  /** Runs a turn: `{events}`, as they come. A loop over them that ends early interrupts the turn. */
  async runStreamed(input, options = {}) {
    return { events: this.#turn(input, options) };
  }

  /** Adds input to the turn that runs. */
  steer(turnId, input) {
    return this.#codex.call("turn/steer", { threadId: this.#id, expectedTurnId: turnId, input: inputOf(input) });
  }

  interrupt(turnId) {
    return this.#codex.call("turn/interrupt", { threadId: this.#id, turnId });
  }

  /** Interrupts a turn, again if the server is not ready for it, until the turn is over. */
  async #interruptSoon(turnId, isOver) {
    for (const wait of turnId ? INTERRUPTS_MS : []) {
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      if (isOver()) return;
      const isDone = await this.interrupt(turnId).then(() => true, () => false);
      if (isDone) return;
    }
  }

  /** Interrupts a turn that nobody reads any more, and waits for its end, so that the next one does not join it. */
  async #endEarly(turn, events) {
    await this.#interruptSoon(turn.id, () => events.isOver);
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, END_MS)));
    for (let event = {}; event && !events.isOver; ) {
      event = (await Promise.race([turn.events.next(), late]))?.value;
      if (event) events.take(event);
    }
    clearTimeout(timer);
  }

  async *#turn(input, { outputSchema, signal } = {}) {
    signal?.throwIfAborted();
    // One turn at a time: the next begins when the one before has ended.
    const before = this.#last;
    const turnOver = deferred();
    this.#last = turnOver.promise;
    await before;
    try {
      const isNew = this.#id === undefined;
      await this.#open();
      if (isNew) yield { type: "thread.started", thread_id: this.#id };
      yield* this.#running(defined({ threadId: this.#id, input: inputOf(input), outputSchema }), signal);
    } finally {
      turnOver.resolve();
    }
  }

  async *#running(params, signal) {
    const turn = new RunningTurn(this.#id);
    const unfollow = this.#codex.follow(turn);
    const interrupt = () => this.#interruptSoon(turn.id, () => events?.isOver);
    let events;
    try {
      await this.#send(turn, params, signal);
      events = new TurnEvents(turn.id);
      signal?.addEventListener("abort", interrupt);
      if (signal?.aborted) interrupt();
      yield { type: "turn.started", turn_id: turn.id };
      while (!events.isOver) {
        const { value } = await turn.events.next();
        // An aborted turn is told by its signal, not as a failure.
        const told = events.take(value);
        if (events.isOver) signal?.throwIfAborted();
        yield* told;
      }
    } finally {
      signal?.removeEventListener("abort", interrupt);
      if (events && !events.isOver) await this.#endEarly(turn, events);
      unfollow();
    }
  }

  /** Starts a turn, again if the connection breaks: its name tells a new server whether it has the turn already. */
  async #send(turn, params, signal) {
    const named = { ...params, clientUserMessageId: crypto.randomUUID() };
    for (let isRepeated = false; ; isRepeated = true) {
      const client = await this.#codex.connected();
      try {
        turn.id = (await client.call("turn/start", named, { signal })).turn.id;
        if (!isRepeated) return;
        // The server that is gone may have taken the turn; then it is over, and no event will say so.
        const known = await client.call("thread/read", { threadId: turn.thread, includeTurns: true }, { signal });
        return turn.recover({ ...known, reset: true });
      } catch (error) {
        if (!client.isClosed) throw error;
      }
    }
  }
}
