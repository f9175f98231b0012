// Texts and lists of a server that are made to cost a client much time or to make it fail.

import assert from "node:assert/strict";
import test from "node:test";

import { markdown } from "../src/markdown.js";
import { ofText } from "../src/diff.js";
import { byteLength, durationMs } from "../src/shapes.js";
import { State } from "../src/state.js";
import { Events } from "../src/connection.js";
import { Transcript, eventOf, readLine } from "../src/transcript.js";

/** Many times more than it takes, and many times less than a quadratic pattern would. */
const ENOUGH_MS = 2000;
const MANY = 20_000;

function quickly(name, action) {
  test(name, () => {
    const began = performance.now();
    action();
    const took = performance.now() - began;
    assert.ok(took < ENOUGH_MS, `${Math.round(took)} ms`);
  });
}

const line = (value) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));

quickly("blanks within a line cost no time", () => {
  const params = { threadId: "t", text: `a${" ".repeat(1e6)}|` };
  assert.equal(readLine(line({ method: "x", params })).type, "event");
  assert.equal(readLine(line(`${" ".repeat(1e6)}|`)).type, "noise");
});

quickly("a long duration costs no time", () => {
  assert.equal(durationMs(`${"1".repeat(1e6)}..`), undefined);
  assert.equal(durationMs(`${"1s ".repeat(3e5)}`), 3e8);
  assert.equal(durationMs("1.5s"), 1500);
  assert.equal(durationMs(".5s 1."), 501);
});

quickly("quotes within the name of a file cost no time", () => {
  const name = `x${'"'.repeat(3e5)}x`;
  const [file] = ofText(`diff --git a/x b/x\n--- "a/${name}"\n+++ "b/${name}"\n@@ -1 +1 @@\n-a\n+b\n`);
  assert.equal(file.path, name);
});

quickly("a turn may have many items, and a thread many turns", () => {
  const state = new State();
  const where = { thread: "t", turn: "u" };
  for (let at = 0; at < MANY; at += 1) {
    const item = { type: "agentMessage", id: `i${at}`, text: "" };
    state.apply({ type: "itemStarted", ...where, item, teller: 3 });
    state.apply({ type: "delta", ...where, item: `i${at}`, part: "message", index: 0, text: "x", teller: 3 });
    state.apply({ type: "itemCompleted", ...where, item: { ...item, text: "x" }, teller: 3 });
    state.apply({ type: "delta", ...where, item: "", part: "summary", index: at % 9000, text: "y", teller: 0 });
    state.apply({ type: "asked", thread: "t", id: at, method: "m", params: {} });
  }
  for (let at = 0; at < MANY; at += 1) state.apply({ type: "turnStarted", thread: "t", turn: `v${at}` });
  const { turns, questions } = state.threads.get("t");
  assert.equal(turns.length, MANY + 1);
  assert.equal(turns[0].items.filter((item) => item.kind === "agentMessage").length, MANY);
  assert.equal(questions.length, 1000);
});

test("arguments that are nested deep are shown as a note", () => {
  const state = new State();
  const deep = "[".repeat(2e5) + "]".repeat(2e5);
  const item = `{"type":"mcpToolCall","id":"i","server":"s","tool":"t","arguments":${deep}}`;
  const text = `{"method":"item/completed","params":{"threadId":"t","turnId":"u","item":${item}}}`;
  state.apply(eventOf(readLine(line(text))));
  assert.match(markdown(state.threads.get("t")), /nested too deep/);
});

quickly("a line may come byte by byte", () => {
  const transcript = new Transcript();
  const bytes = line(`{"method":"x","params":{"text":"${"y".repeat(1e6)}"}}`);
  const buffer = new Uint8Array(1);
  for (const byte of bytes) {
    // The reader uses its buffer again.
    buffer[0] = byte;
    assert.equal(transcript.push(buffer).length, 0);
  }
  assert.equal(transcript.push(line("\n"))[0].event.type, "unknown");
});

test("texts that wait are counted in bytes", async () => {
  for (const text of ["", "a", "é", "漢", "🎉"]) assert.equal(byteLength(text), Buffer.byteLength(text));
  const events = new Events();
  const delta = { type: "delta", thread: "t", turn: "u", item: "i", part: "message", index: 0, teller: 3 };
  for (let at = 0; at < 5; at += 1) events.push({ ...delta, text: "漢".repeat(1 << 19) });
  events.close();
  let bytes = 0;
  for await (const event of events) bytes += event.type === "delta" ? Buffer.byteLength(event.text) : 0;
  assert.equal(bytes, 2 * 3 * (1 << 19));
});
