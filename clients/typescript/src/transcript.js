// Bytes of a server as messages, however they are cut. A line that is no message is a note.

import { isObject } from "./shapes.js";
import { isId, notification, request, response } from "./router.js";

/** The longest line that is kept. */
export const MAX_LINE_BYTES = 32 * 1024 * 1024;
const NEWLINE = 10;

/** Cuts bytes into lines and reads them. */
export class Transcript {
  #pieces = [];
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
      [this.#pieces, this.#kept] = [[], 0];
    } else if (bytes.length > 0) {
      // A copy: the reader may use its buffer again.
      this.#pieces.push(bytes.slice());
      this.#kept += bytes.length;
    }
  }

  #take(messages) {
    if (this.#skipped >= 0) {
      messages.push({ type: "noise", bytes: this.#skipped, why: "a line is too long" });
    } else if (this.#kept > 0) {
      const message = readLine(joined(this.#pieces, this.#kept));
      if (message !== undefined) messages.push(message);
    }
    [this.#pieces, this.#kept, this.#skipped] = [[], 0, -1];
  }
}

function joined(pieces, length) {
  if (pieces.length === 1) return pieces[0];
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
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
    const line = decoder.decode(bytes).replace(/^[ \t\r\n\f]+|[ \t\r\n\f]+$/g, "");
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
