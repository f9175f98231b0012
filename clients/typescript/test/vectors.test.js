// The vectors that hold the clients of all languages together.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";

import { markdown } from "../src/markdown.js";
import { compareBytes } from "../src/queue.js";
import { State } from "../src/state.js";
import { Transcript, eventOf } from "../src/transcript.js";

const folder = new URL("../../vectors/", import.meta.url);
const vectors = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => ({ name, ...JSON.parse(readFileSync(new URL(name, folder), "utf8")) }));

/** The state after bytes that arrive in pieces of these sizes, over and over. */
function folded(lines, sizes) {
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
  return state;
}

/** The same as JSON shows it. */
const stateOf = (lines, sizes) => JSON.parse(JSON.stringify(folded(lines, sizes).toValue()));

/** Numbers from 1 to a bound that look like chance and are the same each time. */
function* chance(seed, bound) {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    yield 1 + (state % bound);
  }
}

test("there are vectors", () => assert.ok(vectors.length > 20));

for (const { name, lines, state, markdown: shown } of vectors) {
  test(`${name} leaves its state, however it is cut`, () => {
    assert.deepEqual(stateOf(lines, [1 << 20]), state);
    const threads = [...folded(lines, [1 << 20]).threads].sort(([one], [other]) => compareBytes(one, other));
    assert.equal(threads.map(([, thread]) => markdown(thread)).join(""), shown);
    for (const seed of [1, 2, 3, 4]) {
      const source = chance(seed, [3, 60, 700, 5000][seed - 1]);
      assert.deepEqual(stateOf(lines, Array.from({ length: 97 }, () => source.next().value)), state);
    }
  });
}
