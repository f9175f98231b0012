// Recorded sessions of several releases, as `clients/vectors/record.py` has built them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { gunzipSync } from "node:zlib";

import { chance, stateOf } from "./folding.js";

const packed = readFileSync(new URL("../../vectors/recorded.json.gz", import.meta.url));
const { lines, sessions, states } = JSON.parse(gunzipSync(packed).toString("utf8"));

/** Checks all sessions in pieces of these sizes, over and over. */
function check(sizes, why) {
  for (const [name, places] of Object.entries(sessions)) {
    const told = places.map((place) => lines[place]);
    assert.deepEqual(stateOf(told, sizes), states[name], `${name}, ${why}`);
  }
}

test("each recorded session leaves its state", () => {
  assert.ok(Object.keys(sessions).length > 100);
  check([1 << 20], "in one piece");
});

test("and it does not depend on the cuts", () => {
  // One byte at a time cuts every character in every place.
  check([1], "byte by byte");
  for (const bound of [7, 300, 2000]) {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const source = chance(seed, bound);
    check(Array.from({ length: 97 }, () => source.next().value), `cut with seed ${seed} below ${bound}`);
  }
});
