// The forms of the official SDK: its options as parameters of the protocol, and items and events of the protocol as its
// own.

import { Teller } from "./events.js";

/** The members that are set. */
export const defined = (members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null));

/** The input of a turn in the form of the protocol. */
export function inputOf(input) {
  if (typeof input === "string") return [{ type: "text", text: input }];
  return input.map((part) => (part.type === "local_image" ? { type: "localImage", path: part.path } : part));
}

/** Options of a thread as parameters of `thread/start`, `thread/resume` and `thread/fork`. */
export function threadParams(options) {
  const config = {
    ...options.config,
    ...defined({
      model_reasoning_effort: options.modelReasoningEffort,
      web_search: options.webSearchMode ?? (options.webSearchEnabled === undefined ? undefined : webSearch(options)),
      "sandbox_workspace_write.network_access": options.networkAccessEnabled,
      "sandbox_workspace_write.writable_roots": options.additionalDirectories,
    }),
  };
  return defined({
    model: options.model,
    cwd: options.workingDirectory,
    sandbox: options.sandboxMode,
    approvalPolicy: options.approvalPolicy,
    baseInstructions: options.baseInstructions,
    developerInstructions: options.developerInstructions,
    threadSource: options.threadSource,
    config: Object.keys(config).length > 0 ? config : undefined,
  });
}

const webSearch = ({ webSearchEnabled }) => (webSearchEnabled ? "live" : "disabled");

const isTable = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const key = (name) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name));

/** A value as TOML writes it. */
export function toml(value) {
  if (typeof value === "string" || typeof value === "boolean") return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (isTable(value)) {
    return `{${Object.entries(value).map(([name, member]) => `${key(name)} = ${toml(member)}`).join(", ")}}`;
  }
  throw new TypeError(`${String(value)} cannot be a value of the configuration`);
}

/** Nested options as arguments of the command line, one for each value. */
export function configArgs(config, path = []) {
  return Object.entries(config).flatMap(([name, value]) => {
    const whole = [...path, key(name)];
    if (value === undefined) return [];
    if (isTable(value) && Object.keys(value).length > 0) return configArgs(value, whole);
    return ["--config", `${whole.join(".")}=${toml(value)}`];
  });
}

const failedIfDeclined = (status) => {
  if (status === "inProgress") return "in_progress";
  return status === "declined" ? "failed" : status;
};

/** An item as the official SDK shows it; undefined if it has no such item. */
export function sdkItem(item) {
  const { id } = item;
  const status = failedIfDeclined(item.status);
  switch (item.type) {
    case "agentMessage":
      return { id, type: "agent_message", text: item.text ?? "" };
    case "reasoning":
      return { id, type: "reasoning", text: (item.summary ?? []).join("\n") };
    case "commandExecution": {
      const output = item.aggregatedOutput ?? "";
      const code = defined({ exit_code: item.exitCode });
      return { id, type: "command_execution", command: item.command, aggregated_output: output, ...code, status };
    }
    case "fileChange": {
      const changes = (item.changes ?? []).map(({ path, kind }) => ({ path, kind: kind?.type ?? kind }));
      return { id, type: "file_change", changes, status };
    }
    case "mcpToolCall": {
      const { server, tool, arguments: given, result, error } = item;
      const told = result && { content: result.content ?? [], structured_content: result.structuredContent ?? null };
      return { id, type: "mcp_tool_call", server, tool, arguments: given, ...defined({ result: told, error }), status };
    }
    case "webSearch":
      return { id, type: "web_search", query: item.query };
    default:
      return undefined;
  }
}

/** The kinds of items that are shown when they start. */
const STARTING = new Set(["commandExecution", "mcpToolCall"]);
const COUNTS = ["inputTokens", "cachedInputTokens", "cacheWriteInputTokens", "outputTokens", "reasoningOutputTokens"];

/** Turns the events of one turn into those of the official SDK. */
export class TurnEvents {
  #turn;
  #completed = new Set();
  #todo;
  #before;
  #total;
  #failure = "";
  isOver = false;

  constructor(turn) {
    this.#turn = turn;
  }

  /** The events that an event of the thread becomes. */
  take(event) {
    if (event.type === "usage") this.#count(event.usage);
    // Older servers report everything in two dialects.
    const isOther = (event.teller ?? Teller.ITEMS) !== Teller.ITEMS;
    if (event.turn !== this.#turn || isOther) return [];
    switch (event.type) {
      case "error":
        if (!event.willRetry) this.#failure = event.message;
        return [];
      case "itemStarted":
        return STARTING.has(event.item.type) ? [{ type: "item.started", item: sdkItem(event.item) }] : [];
      case "itemCompleted":
        return this.#complete(event.item);
      case "plan":
        return [this.#plan(event.plan)];
      case "turnEnded":
        return this.#end(event);
      default:
        return [];
    }
  }

  #complete(told) {
    if (this.#completed.has(told.id)) return [];
    this.#completed.add(told.id);
    const item = sdkItem(told);
    return item ? [{ type: "item.completed", item }] : [];
  }

  #plan({ steps }) {
    const type = this.#todo ? "item.updated" : "item.started";
    const items = steps.map(({ step, status }) => ({ text: step, completed: status === "completed" }));
    this.#todo = { id: `${this.#turn}-plan`, type: "todo_list", items };
    return { type, item: this.#todo };
  }

  /** The tokens of the turn are those of the thread without those that it had before. */
  #count({ total, last }) {
    this.#total = total;
    this.#before ??= Object.fromEntries(COUNTS.map((name) => [name, (total?.[name] ?? 0) - (last?.[name] ?? 0)]));
  }

  #usage() {
    const [input, cached, written, output, reasoning] = COUNTS.map(
      (name) => (this.#total?.[name] ?? 0) - (this.#before?.[name] ?? 0),
    );
    return {
      input_tokens: input,
      cached_input_tokens: cached,
      cache_write_input_tokens: written,
      output_tokens: output,
      reasoning_output_tokens: reasoning,
    };
  }

  #end({ status, error }) {
    this.isOver = true;
    const plan = this.#todo ? [{ type: "item.completed", item: this.#todo }] : [];
    if (status === "completed") return [...plan, { type: "turn.completed", usage: this.#usage() }];
    const message = error?.message ?? (this.#failure || `the turn was ${status}`);
    return [...plan, { type: "turn.failed", error: { message } }];
  }
}
