// Bytes of a server as messages, however they are cut. A line that is no message is a note.

import { isObject } from "./shapes.js";
import { isId, notification, request, response } from "./router.js";

/** The longest line that is kept. */
export const MAX_LINE_BYTES = 32 * 1024 * 1024;
const NEWLINE = 10;
/** The length of a buffer that is kept for the next line. */
const KEPT_BYTES = 1024 * 1024;

/** Cuts bytes into lines and reads them. */
export class Transcript {
  /** The beginning of a line, in a buffer that grows: pieces of one byte would take a hundred times as much. */
  #rest = new Uint8Array(0);
  #kept = 0;
  #skipped = -1;

  /**
   * Takes more bytes, and returns the messages that are complete with them.
   * @param {Uint8Array} bytes
   */
  push(bytes) {
    const messages = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      this.#keep(bytes.subarray(start, end));
      this.#take(messages);
      start = end + 1;
    }
    this.#keep(bytes.subarray(start));
    return messages;
  }

  /** Takes the end of the input: a last line counts without its end. */
  finish() {
    const messages = [];
    this.#take(messages);
    return messages;
  }

  #keep(bytes) {
    if (this.#skipped >= 0) this.#skipped += bytes.length;
    else if (this.#kept + bytes.length > MAX_LINE_BYTES) {
      this.#skipped = this.#kept + bytes.length;
      [this.#rest, this.#kept] = [new Uint8Array(0), 0];
    } else if (bytes.length > 0) {
      this.#grow(this.#kept + bytes.length);
      this.#rest.set(bytes, this.#kept);
      this.#kept += bytes.length;
    }
  }

  #grow(length) {
    if (length <= this.#rest.length) return;
    const more = new Uint8Array(Math.max(length, Math.min(2 * this.#rest.length, MAX_LINE_BYTES)));
    more.set(this.#rest.subarray(0, this.#kept));
    this.#rest = more;
  }

  #take(messages) {
    if (this.#skipped >= 0) {
      messages.push({ type: "noise", bytes: this.#skipped, why: "a line is too long" });
    } else if (this.#kept > 0) {
      const message = readLine(this.#rest.subarray(0, this.#kept));
      if (message !== undefined) messages.push(message);
    }
    // A long line must not keep its memory for ever.
    if (this.#rest.length > KEPT_BYTES) this.#rest = new Uint8Array(0);
    [this.#kept, this.#skipped] = [0, -1];
  }
}

const BLANKS = new Set([9, 10, 12, 13, 32]);

/** Bytes without the white space at their ends. */
function trimmed(bytes) {
  let [start, end] = [0, bytes.length];
  while (start < end && BLANKS.has(bytes[start])) start += 1;
  while (end > start && BLANKS.has(bytes[end - 1])) end -= 1;
  return bytes.subarray(start, end);
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Refuses half a character, which cannot be written anywhere. */
const wellFormed = (_, value) => {
  if (typeof value === "string" && !value.isWellFormed()) throw new SyntaxError("half a character");
  return value;
};

/** Reads a line; an empty one is nothing. */
export function readLine(bytes) {
  const noise = (why) => ({ type: "noise", bytes: bytes.length, why });
  try {
    const line = decoder.decode(trimmed(bytes));
    if (line === "") return undefined;
    const value = JSON.parse(line, /\\u[dD]/.test(line) ? wellFormed : undefined);
    return messageOf(value, noise);
  } catch {
    // Also one that is nested so deep that it cannot be read.
    return noise("a line is not a message");
  }
}

function messageOf(value, noise) {
  const { id = null, method = null, params = null, result = null, error = null } = isObject(value) ? value : {};
  const isMessage = isObject(value) && (method === null || typeof method === "string");
  if (!isMessage || (error !== null && !isObject(error))) return noise("a line is not a message");
  if (id !== null && !isId(id)) return noise("an id is neither a number nor a text");
  if (method !== null) {
    if (id !== null) return { type: "question", id, method, params };
    const seq = Number.isInteger(value.seq) ? value.seq : undefined;
    return { type: "event", event: notification(method, params), seq };
  }
  return id === null
    ? noise("a message has neither an id nor a method")
    : { type: "response", id, result, error };
}

/** The event that a message is for a state. */
export function eventOf(message) {
  switch (message.type) {
    case "event":
      return message.event;
    case "question":
      return request(message.id, message.method, message.params);
    case "response":
      return message.error === null ? response(message.result) : undefined;
    default:
      return { type: "note", text: `${message.why} (${message.bytes} bytes)` };
  }
}
