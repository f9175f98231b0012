// The vectors that hold the clients of all languages together.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";

import { markdown } from "../src/markdown.js";
import { compareBytes } from "../src/queue.js";
import { chance, folded, stateOf } from "./folding.js";

const folder = new URL("../../vectors/", import.meta.url);
const vectors = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => ({ name, ...JSON.parse(readFileSync(new URL(name, folder), "utf8")) }));

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
