// The vectors that hold the clients of all languages together.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";

import * as approvals from "../src/approvals.js";
import { markdown } from "../src/markdown.js";
import { compareBytes } from "../src/queue.js";
import { anyText, durationMs, threadId, turnId } from "../src/shapes.js";
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
      emptyAmendment: approvals.allowWithAmendment([]),
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

test("an approval that cannot be read is denied, whatever the policy", async () => {
  const { questions } = JSON.parse(readFileSync(new URL("answers/readable.json", folder), "utf8"));
  assert.ok(questions.length > 5);
  for (const { method, params, readable } of questions) {
    let asked = 0;
    const handler = (question) => {
      asked += 1;
      return approvals.allowAll(question);
    };
    const { answer, note } = await approvals.answer({ id: 1, method, params }, handler);
    assert.equal(asked, readable ? 1 : 0, JSON.stringify(params));
    assert.deepEqual(answer, approvals.encode(method, readable ? approvals.allow() : approvals.deny()));
    assert.equal(note === undefined, readable, note);
  }
});

test("durations, texts and ids are read in all shapes", () => {
  const { durations, texts, ids } = JSON.parse(readFileSync(new URL("answers/shapes.json", folder), "utf8"));
  for (const [value, expected] of durations) assert.equal(durationMs(value) ?? null, expected, JSON.stringify(value));
  for (const [value, expected] of texts) assert.equal(anyText(value) ?? null, expected, JSON.stringify(value));
  for (const [params, ...expected] of ids) {
    assert.deepEqual([threadId(params), turnId(params)], expected, JSON.stringify(params));
  }
});
