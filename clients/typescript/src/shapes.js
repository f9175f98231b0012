// Ids, texts and durations, in all the shapes in which servers have sent them.

/** Whether a value is an object with members. */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** A member of an object; undefined for anything else. */
export const get = (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined);

/** The first member that is a text and not empty. */
export function text(value, names) {
  for (const name of names) {
    const member = get(value, name);
    if (typeof member === "string" && member !== "") return member;
  }
  return undefined;
}

const THREAD = ["threadId", "thread_id", "conversationId", "conversation_id"];
const SESSION = ["sessionId", "session_id"];
const TURN = ["turnId", "turn_id"];

/** The thread that parameters are about; empty if they name none. */
export function threadId(params) {
  const message = get(params, "msg");
  return (
    text(params, THREAD) ??
    text(get(params, "thread"), ["id"]) ??
    text(message, THREAD) ??
    text(params, SESSION) ??
    text(message, SESSION) ??
    ""
  );
}

/** The turn that parameters are about; empty if they name none. */
export function turnId(params) {
  const message = get(params, "msg");
  return (
    text(params, TURN) ??
    text(get(params, "turn"), ["id"]) ??
    text(message, TURN) ??
    (message === undefined ? undefined : text(params, ["id"])) ??
    ""
  );
}

/** The text in a value: itself, a member of it, or the texts of its parts put together. */
export function anyText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    const texts = value.map(anyText).filter((part) => part !== undefined);
    return texts.length > 0 ? texts.join("") : undefined;
  }
  if (!isObject(value)) return undefined;
  for (const name of ["text", "textDelta", "delta", "message"]) {
    if (typeof get(value, name) === "string") return value[name];
  }
  return anyText(get(value, "content")) ?? anyText(get(value, "item"));
}

const MILLISECONDS = ["millis", "milliseconds", "durationMs", "duration_ms", "ms"];
const PARTS = [
  ["hours", 3.6e12],
  ["minutes", 6e10],
  ["seconds", 1e9],
  ["secs", 1e9],
  ["microseconds", 1e3],
  ["micros", 1e3],
  ["nanos", 1],
  ["nanoseconds", 1],
];
const UNITS = new Map([
  ...["", "ms", "msec", "millis"].map((unit) => [unit, 1]),
  ...["s", "sec", "secs", "second", "seconds"].map((unit) => [unit, 1e3]),
  ...["m", "min", "mins", "minute", "minutes"].map((unit) => [unit, 6e4]),
  ...["h", "hr", "hour", "hours"].map((unit) => [unit, 3.6e6]),
  ...["us", "µs"].map((unit) => [unit, 1e-3]),
  ["ns", 1e-6],
]);

/** A duration in whole milliseconds. */
export function durationMs(value) {
  if (typeof value === "number") return Math.floor(value);
  if (typeof value === "string") return durationText(value);
  if (Array.isArray(value)) return first(value);
  return isObject(value) ? durationMembers(value) : undefined;
}

function first(values) {
  for (const value of values) {
    const found = durationMs(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

function durationMembers(value) {
  const number = MILLISECONDS.map((name) => get(value, name)).find((member) => typeof member === "number");
  if (number !== undefined) return Math.floor(number);
  const parts = PARTS.filter(([name]) => typeof get(value, name) === "number");
  if (parts.length > 0) {
    return Math.floor(parts.reduce((sum, [name, nanos]) => sum + value[name] * nanos, 0) / 1e6);
  }
  return first(["approximate", "pretty", "human"].map((name) => get(value, name))) ?? first(Object.values(value));
}

// Each part of a number is matched in one way only: otherwise a long one that does not fit takes quadratic time.
const AMOUNT = /(\d+(?:\.\d*)?|\.\d+)(?![\d.])\s*(\p{L}*)\s*/uy;

/** Reads `1.5s`, `250ms`, `~30s`, `2m 3s`; a number alone is milliseconds. */
function durationText(value) {
  const rest = value.trim().replace(/^[~≈]+/, "").trim();
  let [total, at] = [0, 0];
  while (at < rest.length) {
    AMOUNT.lastIndex = at;
    const match = AMOUNT.exec(rest);
    const unit = match && UNITS.get(match[2]);
    if (!match || unit === undefined) return undefined;
    total += Number(match[1]) * unit;
    at = AMOUNT.lastIndex;
  }
  return rest === "" ? undefined : Math.floor(total);
}

/** The number of bytes of a text in UTF-8. */
export function byteLength(text) {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) bytes += 1;
    // Each half of a pair counts two.
    if (unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff)) bytes += 1;
  }
  return bytes;
}

/** A value as JSON; a note in place of one that is nested too deep to be written. */
export function jsonText(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return "(nested too deep to be shown)";
  }
}
