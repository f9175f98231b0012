// Events of the queue: `codex/event/TYPE`, in snake case and in camel case.

import { Teller } from "./events.js";
import { configured, index, piece, place, plan, turnEnded } from "./router.js";
import { anyText, durationMs, get, isObject, text, threadId } from "./shapes.js";
import { EVENT_KINDS } from "./tables.js";

const CALL = ["call_id", "callId", "item_id", "itemId", "id"];
const KNOWN = new Set([...EVENT_KINDS, "mcp_startup_update", "mcp_startup_complete", "terminal_interaction"]);

/** The event of a message of the queue. */
export function queueEvent(method, params) {
  const inner = get(params, "msg");
  const message = isObject(inner) ? inner : params;
  const kind = method.startsWith("codex/event/") ? method.slice(12) : text(message, ["type"]) ?? "";
  const where = place(params);
  return (
    turn(kind, where, message, params) ??
    words(kind, where, message) ??
    call(kind, where, message) ?? { type: KNOWN.has(kind) ? "other" : "unknown", method, params }
  );
}

function turn(kind, where, message, params) {
  switch (kind) {
    case "session_configured":
      return configured(threadId(params), message);
    case "task_started":
    case "turn_started":
      return { type: "turnStarted", ...where };
    case "task_complete":
    case "turn_complete":
      return turnEnded(params);
    case "turn_aborted":
      return { type: "turnEnded", ...where, status: "interrupted", error: null };
    case "plan_update":
      return plan(where, message);
    case "turn_diff": {
      const diff = text(message, ["unified_diff", "unifiedDiff", "diff"]);
      return diff === undefined ? undefined : { type: "diff", ...where, diff };
    }
    case "token_count":
      return usage(where.thread, message);
    case "error":
    case "stream_error":
      return { type: "error", ...where, message: anyText(message) ?? "", willRetry: kind === "stream_error" };
    case "warning": {
      const told = anyText(message);
      return told === undefined ? undefined : { type: "warning", thread: where.thread, message: told };
    }
    default:
      return undefined;
  }
}

/** The first of two members that is there. */
const either = (value, [snake, camel]) => get(value, snake) ?? get(value, camel);

function usage(thread, message) {
  const info = get(message, "info");
  if (!isObject(info)) return undefined;
  const counts = (names) => {
    const told = either(info, names);
    const count = (snake, camel) => {
      const found = [snake, camel].map((name) => get(told, name)).find(Number.isInteger);
      return found ?? 0;
    };
    return {
      totalTokens: count("total_tokens", "totalTokens"),
      inputTokens: count("input_tokens", "inputTokens"),
      cachedInputTokens: count("cached_input_tokens", "cachedInputTokens"),
      outputTokens: count("output_tokens", "outputTokens"),
      reasoningOutputTokens: count("reasoning_output_tokens", "reasoningOutputTokens"),
    };
  };
  return {
    type: "usage",
    thread,
    usage: {
      total: counts(["total_token_usage", "totalTokenUsage"]),
      last: counts(["last_token_usage", "lastTokenUsage"]),
      modelContextWindow: either(info, ["model_context_window", "modelContextWindow"]) ?? null,
    },
  };
}

/** Messages and reasoning. */
function words(kind, where, message) {
  const more = anyText(get(message, "delta"));
  const grown = (item, part, at, teller) =>
    item === undefined || more === undefined ? undefined : piece(where, item, part, at, more, teller);
  const named = (part, at = 0) => grown(text(message, ["item_id", "itemId"]), part, at, Teller.QUEUE);
  const whole = (make) => {
    const told = anyText(message);
    if (told === undefined) return undefined;
    return { type: "itemCompleted", ...where, item: make(told), teller: Teller.OLD_QUEUE };
  };
  switch (kind) {
    case "item_started":
    case "item_completed": {
      const item = camelItem(get(message, "item"));
      const type = kind === "item_started" ? "itemStarted" : "itemCompleted";
      return item && { type, ...where, item, teller: Teller.QUEUE };
    }
    case "agent_message_content_delta":
      return named("message");
    case "reasoning_content_delta":
      return named("summary", index(message, ["summary_index", "summaryIndex"]));
    case "reasoning_raw_content_delta":
      return named("reasoning", index(message, ["content_index", "contentIndex"]));
    case "agent_message_delta":
      return grown("", "message", 0, Teller.OLD_QUEUE);
    case "agent_reasoning_delta":
      return grown("", "summary", 0, Teller.OLD_QUEUE);
    case "agent_message":
      return whole((told) => ({ type: "agentMessage", text: told }));
    case "agent_reasoning":
      return whole((told) => ({ type: "reasoning", summary: [told], content: [] }));
    case "user_message":
      return whole((told) => ({ type: "userMessage", content: [{ type: "text", text: told }] }));
    default:
      return undefined;
  }
}

/** An item of the queue as the second dialect tells it. */
function camelItem(item) {
  const kind = text(item, ["type"]);
  if (kind === undefined) return undefined;
  const members = { ...item, type: kind[0].toLowerCase() + kind.slice(1) };
  if (members.type === "agentMessage") {
    delete members.content;
    members.text = anyText(get(item, "content")) ?? "";
  } else if (members.type === "reasoning") {
    delete members.summary_text;
    delete members.raw_content;
    members.summary = get(item, "summary_text") ?? [];
    members.content = get(item, "raw_content") ?? [];
  }
  return members;
}

/** Calls of tools: commands, patches, tools of MCP servers, searches. */
function call(kind, where, message) {
  const id = text(message, CALL);
  if (id === undefined) return undefined;
  const begun = (item) => ({ type: "itemStarted", ...where, item, teller: Teller.QUEUE });
  const ended = (item) => ({ type: "itemCompleted", ...where, item, teller: Teller.QUEUE });
  switch (kind) {
    case "exec_command_begin":
      return begun(command(id, message));
    case "exec_command_output_delta": {
      const chunk = text(message, ["chunk"]);
      if (chunk === undefined) return undefined;
      return piece(where, id, "output", 0, bytesOrText(message, chunk), Teller.QUEUE);
    }
    case "exec_command_end":
      return ended(commandEnd(id, message));
    case "patch_apply_begin":
      return begun({ type: "fileChange", id, status: "inProgress", changes: changes(message) });
    case "patch_apply_end": {
      const status = get(message, "success") === true ? "completed" : "failed";
      return ended({ type: "fileChange", id, status, changes: changes(message) });
    }
    case "mcp_tool_call_begin":
      return begun(tool(id, message, "inProgress"));
    case "mcp_tool_call_end":
      return ended(toolEnd(id, message));
    case "web_search_begin":
      return begun(search(id, message));
    case "web_search_end":
      return ended(search(id, message));
    case "view_image_tool_call":
      return ended({ type: "imageView", id, path: get(message, "path") ?? null });
    default:
      return undefined;
  }
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** A piece of output. Real servers, which spell `call_id`, send its bytes in Base64. */
function bytesOrText(message, chunk) {
  if (get(message, "call_id") === undefined || !BASE64.test(chunk)) return chunk;
  const bytes = Uint8Array.from(atob(chunk), (letter) => letter.charCodeAt(0));
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

const search = (id, message) => ({ type: "webSearch", id, query: text(message, ["query"]) ?? "" });

/** A word as a shell reads it; clients in all languages quote alike. */
const quoted = (word) => (/^[A-Za-z0-9+\-./:@_=,%]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function command(id, message) {
  const told = get(message, "command");
  const line = Array.isArray(told) ? told.filter((word) => typeof word === "string").map(quoted).join(" ") : told;
  return {
    type: "commandExecution",
    id,
    command: typeof line === "string" ? line : "",
    status: "inProgress",
    cwd: get(message, "cwd") ?? null,
    aggregatedOutput: null,
    exitCode: null,
    durationMs: null,
  };
}

function commandEnd(id, message) {
  const exitCode = ["exit_code", "exitCode"].map((name) => get(message, name)).find(Number.isInteger) ?? null;
  const streams = ["stdout", "stderr"].map((name) => get(message, name)).filter((part) => typeof part === "string");
  const output =
    text(message, ["aggregated_output", "aggregatedOutput"]) ?? (streams.length > 0 ? streams.join("") : undefined);
  return {
    type: "commandExecution",
    id,
    status: (exitCode ?? 0) === 0 ? "completed" : "failed",
    exitCode,
    durationMs: durationMs(get(message, "duration")) ?? null,
    ...(output === undefined ? {} : { aggregatedOutput: output }),
  };
}

/** The changes of a patch as a list in the order of paths. */
export function changes(message) {
  const told = ["changes", "fileChanges", "file_changes"].map((name) => get(message, name)).find(isObject) ?? {};
  const read = ([path, change]) => {
    let kind = text(change, ["type"]);
    const old = isObject(change) && kind === undefined ? Object.entries(change) : [];
    if (old.length === 1) [kind, change] = old[0];
    const diff = text(change, ["unified_diff", "unifiedDiff", "content"]) ?? "";
    const moved = kind === "update" ? { move_path: either(change, ["move_path", "movePath"]) ?? null } : {};
    return { path, kind: { type: kind ?? "", ...moved }, diff };
  };
  return Object.entries(told)
    .sort(([one], [other]) => compareBytes(one, other))
    .map(read);
}

/** The order of the code points, which is that of the bytes. */
export function compareBytes(one, other) {
  const [left, right] = [[...one], [...other]];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const difference = left[at].codePointAt(0) - right[at].codePointAt(0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

function tool(id, message, status) {
  const told = get(message, "invocation");
  const invocation = told === undefined ? message : told;
  return {
    type: "mcpToolCall",
    id,
    status,
    server: text(invocation, ["server"]) ?? "",
    tool: text(invocation, ["tool"]) ?? "",
    arguments: get(invocation, "arguments") ?? null,
    result: null,
    error: null,
  };
}

function toolEnd(id, message) {
  const result = get(message, "result");
  const refused = get(result, "Err");
  const failure = refused === undefined ? get(message, "error") ?? undefined : refused;
  const inner = get(result, "Ok");
  const done = inner === undefined ? result : inner;
  const hasFailed = failure !== undefined || get(done, "isError") === true;
  const members = tool(id, message, hasFailed ? "failed" : "completed");
  members.durationMs = durationMs(get(message, "duration")) ?? null;
  if (failure !== undefined) members.error = { message: anyText(failure) ?? "" };
  else if (isObject(done)) {
    members.result = {
      content: get(done, "content") ?? null,
      structuredContent: get(done, "structuredContent") ?? null,
    };
  }
  return members;
}
