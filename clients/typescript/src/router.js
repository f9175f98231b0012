// Turns what a server tells, in any dialect, into events. Pure and total: a message of a method that is not known is
// an `unknown` event, and one that lacks what its method needs is an `other` one.

import { Teller } from "./events.js";
import { queueEvent } from "./queue.js";
import { anyText, get, isObject, text, threadId, turnId } from "./shapes.js";
import { NOTIFICATIONS } from "./tables.js";

const KNOWN = new Set([
  ...NOTIFICATIONS,
  "remoteControl/status/changed",
  "thread/settings/updated",
  "thread/queue/changed",
  "thread/environment/updated",
  "item/plan/delta",
  "item/autoApprovalReview/started",
  "item/autoApprovalReview/completed",
  "hook/started",
  "hook/completed",
  "model/rerouted",
  "app/list/updated",
  "mcpServer/oauthLogin/completed",
]);
const ITEM = ["itemId", "item_id"];

/** The event of a notification. */
export function notification(method, params = null) {
  if (method === "codex/event" || method.startsWith("codex/event/")) return queueEvent(method, params);
  return secondDialect(method, params) ?? { type: KNOWN.has(method) ? "other" : "unknown", method, params };
}

/** A request of the server as an event. */
export const request = (id, method, params = null) => ({ type: "asked", thread: threadId(params), id, method, params });

/** The event of a response, if it carries a thread. */
export function response(result) {
  const thread = get(result, "thread");
  return thread === undefined ? undefined : threadEvent(thread, get(result, "reset") === true);
}

function threadEvent(value, isReset) {
  const id = text(value, ["id"]);
  if (id === undefined) return undefined;
  const turns = get(value, "turns");
  return { type: "thread", id, value, whole: (Array.isArray(turns) && turns.length > 0) || isReset };
}

const is = (value, make) => (value === undefined ? undefined : make(value));

const READERS = {
  "thread/started": (params) => threadEvent(get(params, "thread"), false),
  "thread/status/changed": (params) => is(get(params, "status"), (value) => changed(params, "status", value)),
  "thread/name/updated": (params) => is(get(params, "threadName"), (value) => changed(params, "name", value)),
  "thread/archived": (params) => changed(params, "archived", true),
  "thread/unarchived": (params) => changed(params, "archived", false),
  "thread/deleted": (params) => changed(params, "deleted", true),
  "thread/closed": (params) => changed(params, "closed", true),
  "thread/goal/updated": (params) => is(get(params, "goal"), (value) => changed(params, "goal", value)),
  "thread/goal/cleared": (params) => changed(params, "goal", null),
  "turn/started": (params) => ({ type: "turnStarted", ...place(params) }),
  "turn/completed": turnEnded,
  "item/started": (params) => told(params, "itemStarted", "startedAtMs"),
  "item/completed": (params) => told(params, "itemCompleted", "completedAtMs"),
  "item/created": created,
  "item/delta": createdDelta,
  "item/agentMessage/delta": (params) => delta(params, "message", 0),
  "item/plan/delta": (params) => delta(params, "plan", 0),
  "item/commandExecution/outputDelta": (params) => delta(params, "output", 0),
  "item/reasoning/summaryTextDelta": (params) => delta(params, "summary", index(params, ["summaryIndex"])),
  "item/reasoning/textDelta": (params) => delta(params, "reasoning", index(params, ["contentIndex"])),
  "turn/plan/updated": (params) => plan(place(params), params),
  "turn/diff/updated": (params) =>
    typeof get(params, "diff") === "string" ? { type: "diff", ...place(params), diff: params.diff } : undefined,
  "thread/tokenUsage/updated": (params) =>
    is(get(params, "tokenUsage"), (usage) => ({ type: "usage", thread: threadId(params), usage })),
  "account/rateLimits/updated": (params) => is(get(params, "rateLimits"), (limits) => ({ type: "rateLimits", limits })),
  error: (params) => ({
    type: "error",
    ...place(params),
    message: anyText(get(params, "error") ?? params) ?? "",
    willRetry: get(params, "willRetry") === true,
  }),
  warning: (params) => is(anyText(params), (message) => ({ type: "warning", thread: threadId(params), message })),
  "serverRequest/resolved": (params) => {
    const id = get(params, "requestId");
    return isId(id) ? { type: "resolved", thread: threadId(params), id } : undefined;
  },
  sessionConfigured: (params) => is(text(params, ["sessionId", "session_id"]), (id) => configured(id, params)),
};

/** Whether a value is an id of JSON-RPC. */
export const isId = (id) => typeof id === "string" || Number.isSafeInteger(id);

function secondDialect(method, params) {
  return Object.hasOwn(READERS, method) ? READERS[method](params) : undefined;
}

const changed = (params, member, value) => ({ type: "threadChanged", thread: threadId(params), member, value });

/** The thread and the turn of a message. */
export const place = (params) => ({ thread: threadId(params), turn: turnId(params) });

/** The start of a conversation. */
export function configured(id, params) {
  const model = get(params, "model");
  return { type: "thread", id, value: { id, ...(model === undefined ? {} : { model }) }, whole: false };
}

/** The end of a turn. Its status is in the turn, or beside it. */
export function turnEnded(params) {
  const turn = get(params, "turn");
  const status = text(turn, ["status"]) ?? text(params, ["status"]) ?? "completed";
  const told = get(turn, "error");
  const error = told === undefined ? get(params, "error") : told;
  return { type: "turnEnded", ...place(params), status, error: error ?? null };
}

function told(params, type, time) {
  const item = get(params, "item");
  if (!isObject(item) || typeof get(item, "type") !== "string") return undefined;
  const atMs = get(params, time);
  return { type, ...place(params), item, teller: Teller.ITEMS, atMs: Number.isInteger(atMs) ? atMs : undefined };
}

/** More of an item. */
export const piece = (where, item, part, partIndex, more, teller) => ({
  type: "delta",
  ...where,
  item,
  part,
  index: partIndex,
  text: more,
  teller,
});

function delta(params, part, partIndex) {
  const item = text(params, ITEM);
  const more = get(params, "delta");
  if (item === undefined || typeof more !== "string") return undefined;
  return piece(place(params), item, part, partIndex, more, Teller.ITEMS);
}

/** The place of a part among those of its item. */
export function index(params, names) {
  const found = names.map((name) => get(params, name)).find((member) => Number.isInteger(member) && member >= 0);
  return found ?? 0;
}

/** The plan of a turn, with its steps in the words of the second dialect. */
export function plan(where, params) {
  const steps = get(params, "plan");
  if (!Array.isArray(steps)) return undefined;
  const read = (step) => {
    const status = text(step, ["status"]) ?? "pending";
    const words = get(step, "step");
    return {
      step: anyText(words === undefined ? step : words) ?? "",
      status: status === "in_progress" ? "inProgress" : status,
    };
  };
  const explanation = get(params, "explanation") ?? null;
  return { type: "plan", ...where, plan: { explanation, steps: steps.map(read) } };
}

function createdKind(item) {
  const kind = (text(item, ["type"]) ?? "").toLowerCase();
  const purpose = (text(item, ["purpose"]) ?? "").toLowerCase();
  if (kind.includes("reasoning") || purpose === "reasoning") return "reasoning";
  if (kind === "plan") return "plan";
  return kind === "image" || kind === "imageview" ? "imageView" : "agentMessage";
}

function created(params) {
  const item = get(params, "item");
  if (item === undefined) return undefined;
  const where = place(params);
  const kind = createdKind(item);
  if (kind === "plan" && get(item, "plan") !== undefined) return plan(where, item);
  const whole = anyText(item) ?? "";
  const members = { type: kind, id: text(item, ["id"]) ?? text(params, ITEM) ?? "" };
  if (kind === "reasoning") Object.assign(members, { summary: [whole], content: [] });
  else if (kind === "imageView") members.path = get(item, "path") ?? null;
  else members.text = whole;
  const isComplete = get(item, "text") !== undefined || kind === "imageView";
  return { type: isComplete ? "itemCompleted" : "itemStarted", ...where, item: members, teller: Teller.CREATED };
}

function createdDelta(params) {
  const inner = get(params, "item");
  const item = text(params, ITEM) ?? text(inner, ["id"]) ?? "";
  const part = createdKind(inner) === "reasoning" ? "summary" : "message";
  const more = anyText(get(params, "delta")) ?? anyText(inner);
  return more === undefined ? undefined : piece(place(params), item, part, 0, more, Teller.CREATED);
}
