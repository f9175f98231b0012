// The conventions of the official SDK: `Codex`, `startThread`, `resumeThread`, `run`, `runStreamed`; and what its users
// ask for: fork, list, delete, approvals.

import { Supervisor } from "./supervisor.js";

/** A turn that has failed. */
export class TurnError extends Error {
  constructor(message) {
    super(message);
    this.name = "TurnError";
  }
}

const inputOf = (input) => {
  if (typeof input === "string") return [{ type: "text", text: input }];
  return input.map((part) =>
    part.type === "local_image" ? { type: "localImage", path: part.path } : part,
  );
};

const defined = (members) => Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

/** Options of a thread in the words of the protocol. */
const threadParams = (options) =>
  defined({
    model: options.model,
    cwd: options.workingDirectory,
    sandbox: options.sandboxMode,
    approvalPolicy: options.approvalPolicy,
    baseInstructions: options.baseInstructions,
    developerInstructions: options.developerInstructions,
    config: options.config,
  });

/** An item as the official SDK shows it. */
export function sdkItem(item) {
  const { id } = item;
  const status = item.status === "inProgress" ? "in_progress" : item.status;
  switch (item.type) {
    case "agentMessage":
      return { id, type: "agent_message", text: item.text ?? "" };
    case "reasoning":
      return { id, type: "reasoning", text: (item.summary ?? []).join("\n") };
    case "commandExecution":
      return {
        id,
        type: "command_execution",
        command: item.command,
        aggregated_output: item.aggregatedOutput ?? "",
        exit_code: item.exitCode ?? undefined,
        status: status === "declined" ? "failed" : status,
      };
    case "fileChange": {
      const changes = (item.changes ?? []).map(({ path, kind }) => ({ path, kind: kind?.type ?? kind }));
      return { id, type: "file_change", changes, status: status === "declined" ? "failed" : status };
    }
    case "mcpToolCall": {
      const { server, tool, result, error } = item;
      return { id, type: "mcp_tool_call", server, tool, arguments: item.arguments, result, error, status };
    }
    case "webSearch":
      return { id, type: "web_search", query: item.query };
    default:
      return undefined;
  }
}

const sdkUsage = (last) => ({
  input_tokens: last?.inputTokens ?? 0,
  cached_input_tokens: last?.cachedInputTokens ?? 0,
  output_tokens: last?.outputTokens ?? 0,
});

/** Starts threads on a server that it runs. */
export class Codex {
  #options;
  #supervisor;
  #client;
  #subscribers = new Set();

  /** @param {object} [options] `codexPathOverride`, `baseUrl`, `apiKey`, `env`, `config`, `approvals` */
  constructor(options = {}) {
    this.#options = options;
  }

  /** The client of the protocol, for everything that has no convention. */
  async client() {
    this.#client ??= this.#start();
    return this.#client;
  }

  async #start() {
    const { codexPathOverride, baseUrl, apiKey, env = {}, config = {}, approvals, clientName } = this.#options;
    const args = Object.entries({ ...config, ...(baseUrl ? { openai_base_url: baseUrl } : {}) }).flatMap(
      ([name, value]) => ["--config", `${name}=${JSON.stringify(value)}`],
    );
    const launch = {
      program: codexPathOverride ?? "codex",
      args: [...args, "app-server"],
      env: { ...env, ...(apiKey ? { CODEX_API_KEY: apiKey } : {}) },
    };
    this.#supervisor = new Supervisor(launch, { approvals, name: clientName ?? "codex-embed" });
    this.#supervisor.on("connection", (client) => {
      this.#client = Promise.resolve(client);
      this.#follow(client);
    });
    return this.#supervisor.start();
  }

  async #follow(client) {
    for await (const event of client.events) {
      for (const take of [...this.#subscribers]) take(event);
    }
    for (const take of [...this.#subscribers]) take({ type: "closed" });
  }

  /** Has a function called with every event; returns one that ends it. */
  subscribe(take) {
    this.#subscribers.add(take);
    return () => this.#subscribers.delete(take);
  }

  startThread(options = {}) {
    return new Thread(this, options, undefined);
  }

  resumeThread(id, options = {}) {
    return new Thread(this, options, id);
  }

  /** A copy of a thread, which goes on by itself. */
  async forkThread(id, options = {}) {
    const { thread } = await (await this.client()).call("thread/fork", { threadId: id, ...threadParams(options) });
    return new Thread(this, options, thread.id);
  }

  /** A page of threads: `{data, nextCursor}`. */
  async listThreads(params = {}) {
    return (await this.client()).call("thread/list", params);
  }

  async deleteThread(id) {
    await (await this.client()).call("thread/delete", { threadId: id });
  }

  async setGoal(id, goal) {
    return (await this.client()).call("thread/goal/set", { threadId: id, ...goal });
  }

  /** Ends the server. */
  async close() {
    await this.#supervisor?.stop();
  }
}

/** A thread. Its id is known once its first turn has started. */
export class Thread {
  #codex;
  #options;
  #id;
  #opened;
  #last = Promise.resolve();

  constructor(codex, options, id) {
    [this.#codex, this.#options, this.#id] = [codex, options, id];
  }

  get id() {
    return this.#id ?? null;
  }

  async #open(client) {
    if (this.#opened === client) return;
    const params = threadParams(this.#options);
    const { thread } = await (this.#id === undefined
      ? client.call("thread/start", params)
      : client.call("thread/resume", { threadId: this.#id, ...params }));
    [this.#id, this.#opened] = [thread.id, client];
  }

  /** Runs a turn to its end: `{items, finalResponse, usage}`. */
  async run(input, options = {}) {
    const { events } = await this.runStreamed(input, options);
    const [items, result] = [[], { items: [], finalResponse: "", usage: null }];
    for await (const event of events) {
      if (event.type === "item.completed") {
        items.push(event.item);
        if (event.item.type === "agent_message") result.finalResponse = event.item.text;
      } else if (event.type === "turn.completed") {
        result.usage = event.usage;
      } else if (event.type === "turn.failed") {
        throw new TurnError(event.error.message);
      }
    }
    return { ...result, items };
  }

  /** Runs a turn: `{events}`, as they come. */
  async runStreamed(input, options = {}) {
    return { events: this.#turn(input, options) };
  }

  /** Adds input to the turn that runs. */
  async steer(turnId, input) {
    const client = await this.#codex.client();
    return client.call("turn/steer", { threadId: this.#id, expectedTurnId: turnId, input: inputOf(input) });
  }

  async interrupt(turnId) {
    return (await this.#codex.client()).call("turn/interrupt", { threadId: this.#id, turnId });
  }

  async *#turn(input, { outputSchema, signal } = {}) {
    signal?.throwIfAborted();
    // One turn at a time: the next begins when the one before has ended.
    const before = this.#last;
    let done;
    this.#last = new Promise((resolve) => (done = resolve));
    await before;
    const client = await this.#codex.client();
    const isNew = this.#id === undefined;
    const queue = new Queue();
    let stop = () => {};
    let turnId;
    const abort = () => turnId && this.interrupt(turnId).catch(() => {});
    try {
      await this.#open(client);
      if (isNew) yield { type: "thread.started", thread_id: this.#id };
      stop = this.#codex.subscribe((event) => (event.thread ?? this.#id) === this.#id && queue.push(event));
      const params = { threadId: this.#id, input: inputOf(input), ...defined({ outputSchema }) };
      const { turn } = await client.call("turn/start", params, { signal });
      turnId = turn.id;
      signal?.addEventListener("abort", abort);
      if (signal?.aborted) abort();
      yield { type: "turn.started" };
      yield* follow(queue, turnId);
      signal?.throwIfAborted();
    } finally {
      stop();
      signal?.removeEventListener("abort", abort);
      done();
    }
  }
}

/** The events of one turn as the official SDK shows them. */
async function* follow(queue, turnId) {
  let usage;
  let failure = "";
  for (;;) {
    const event = await queue.next();
    if (event.type === "closed") {
      yield { type: "turn.failed", error: { message: "the connection is closed" } };
      return;
    }
    if (event.type === "usage") usage = event.usage.last;
    if (event.turn !== turnId) continue;
    if (event.type === "error" && !event.willRetry) failure = event.message;
    if (event.type === "itemStarted" || event.type === "itemCompleted") {
      const item = sdkItem(event.item);
      if (item) yield { type: event.type === "itemStarted" ? "item.started" : "item.completed", item };
    } else if (event.type === "turnEnded") {
      if (event.status === "completed") yield { type: "turn.completed", usage: sdkUsage(usage) };
      else yield { type: "turn.failed", error: { message: event.error?.message ?? (failure || `the turn was ${event.status}`) } };
      return;
    }
  }
}

class Queue {
  #events = [];
  #waiting;

  push(event) {
    this.#events.push(event);
    this.#waiting?.();
  }

  async next() {
    while (this.#events.length === 0) await new Promise((resolve) => (this.#waiting = resolve));
    return this.#events.shift();
  }
}
