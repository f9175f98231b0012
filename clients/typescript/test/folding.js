// Bytes of a server in pieces, and the state that they leave.

import { State } from "../src/state.js";
import { Transcript, eventOf } from "../src/transcript.js";

/** The state after bytes that arrive in pieces of these sizes, over and over. */
export function folded(lines, sizes) {
  const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
  const [transcript, state] = [new Transcript(), new State()];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length];
    for (const message of transcript.push(bytes.subarray(at, at + size))) {
      const event = eventOf(message);
      if (event) state.apply(event);
    }
    at += size;
  }
  for (const message of transcript.finish()) state.apply(eventOf(message));
  return state;
}

/** The same as JSON shows it. */
export const stateOf = (lines, sizes) => JSON.parse(JSON.stringify(folded(lines, sizes).toValue()));

/** Numbers from 1 to a bound that look like chance and are the same each time. */
export function* chance(seed, bound) {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    yield 1 + (state % bound);
  }
}
