// The items of a thread in the order in which they came, filtered and searched.

import { isObject } from "./shapes.js";

/** The members of items that hold text for people. */
const MEMBERS = [
  "text",
  "content",
  "summary",
  "command",
  "aggregatedOutput",
  "changes",
  "server",
  "tool",
  "arguments",
  "result",
  "error",
  "query",
  "path",
  "review",
  "prompt",
];
/** The deepest value that is searched. */
const MOST_DEPTH = 8;

/** The status of an item: as the server reports it, or whether it is complete. */
export function statusOf(item) {
  const { status } = item.members;
  if (typeof status === "string") return status;
  return item.isComplete ? "completed" : "inProgress";
}

/**
 * The items that a filter wants, oldest first: `{turn, item, atMs, status, found}`. The filter has `kinds`, `turn`,
 * `statuses`, `sinceMs`, `untilMs` and `text`; what it leaves out does not matter.
 */
export function* timeline(thread, { kinds = [], turn: only, statuses = [], sinceMs, untilMs, text } = {}) {
  const needle = folded(text ?? "").text;
  for (const turn of thread.turns) {
    if (only !== undefined && turn.id !== only) continue;
    for (const item of turn.items) {
      const [status, atMs] = [statusOf(item), item.beganMs];
      const isWanted =
        (kinds.length === 0 || kinds.includes(item.kind)) &&
        (statuses.length === 0 || statuses.includes(status)) &&
        (sinceMs === undefined || atMs >= sinceMs) &&
        (untilMs === undefined || atMs < untilMs);
      if (!isWanted) continue;
      const found = needle === "" ? undefined : first(textsOf(item), needle);
      if (needle === "" || found) yield { turn, item, atMs, status, found };
    }
  }
}

function first(texts, needle) {
  for (const text of texts) {
    const found = find(text, needle);
    if (found) return found;
  }
  return undefined;
}

/** The texts of an item for people. */
export function textsOf(item) {
  const texts = [];
  for (const name of MEMBERS) collect(item.members[name], texts, 0);
  return texts;
}

/** The texts in a value. The words that only name its form are left out. */
function collect(value, texts, depth) {
  if (typeof value === "string") texts.push(value);
  else if (depth < MOST_DEPTH && Array.isArray(value)) value.forEach((part) => collect(part, texts, depth + 1));
  else if (depth < MOST_DEPTH && isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (name !== "type" && name !== "kind") collect(member, texts, depth + 1);
    }
  }
}

/** A text in lower case, and the place of each of its letters in the original, if they differ. */
function folded(text) {
  if (/^[\x00-\x7f]*$/.test(text)) return { text: text.toLowerCase() };
  const letters = [...text].map((letter) => [letter, letter.toLowerCase()]);
  const lower = letters.map(([, letter]) => letter).join("");
  if (letters.every(([letter, small]) => letter.length === small.length)) return { text: lower };
  const places = [];
  let at = 0;
  for (const [letter, small] of letters) {
    for (let unit = 0; unit < small.length; unit += 1) places.push([at, at + letter.length]);
    at += letter.length;
  }
  return { text: lower, places };
}

/** The first place of a text that is in lower case: `{text, start, end}`. */
export function find(text, needle) {
  const { text: lower, places } = folded(text);
  const at = lower.indexOf(needle);
  if (at < 0) return undefined;
  const end = at + needle.length;
  return places ? { text, start: places[at][0], end: places[end - 1][1] } : { text, start: at, end };
}
