// The vectors that hold the clients of all languages together.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";

import * as approvals from "../src/approvals.js";
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

test("each decision has its answer", () => {
  const { questions, answers } = JSON.parse(readFileSync(new URL("answers/decisions.json", folder), "utf8"));
  assert.ok(Object.keys(questions).length > 5);
  for (const [method, params] of Object.entries(questions)) {
    const decisions = {
      allow: approvals.allow(),
      allowForSession: approvals.allowForSession(),
      allowWithAmendment: approvals.allowWithAmendment(["npm"]),
      deny: approvals.deny("no"),
      cancel: approvals.cancel(),
      toolResult: approvals.toolResult("seven"),
      toolFailure: approvals.toolResult("there is no 8", false),
      grant: approvals.grant({ params }),
      grantForSession: approvals.grant({ params }, true),
    };
    const encoded = Object.entries(decisions).map(([name, decision]) => [name, approvals.encode(method, decision)]);
    assert.deepEqual(Object.fromEntries(encoded), answers[method], method);
  }
});
