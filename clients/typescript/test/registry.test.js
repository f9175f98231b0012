// Threads across breaks of the connection.

import assert from "node:assert/strict";
import test from "node:test";

import { CallError } from "../src/connection.js";
import { LIVES, Registry, mayBecome } from "../src/registry.js";

/** A server that answers from a list. */
class Calls {
  calls = [];

  constructor(...answers) {
    this.answers = answers;
  }

  async call(method, params) {
    this.calls.push([method, { ...params }]);
    const answer = this.answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  }
}

test("only known steps are taken", () => {
  const steps = LIVES.flatMap((from) => LIVES.filter((to) => mayBecome(from, to)).map((to) => `${from} ${to}`));
  assert.equal(
    steps.join(", "),
    "created configured, configured active, configured archived, active completed, active interrupted, " +
      "completed active, completed archived, interrupted active, interrupted archived",
  );
  const registry = new Registry();
  registry.follow("t");
  assert.throws(() => registry.step("t", "active"), /thread t is created and cannot become active/);
  assert.equal(registry.life("t"), "created");
  assert.throws(() => registry.step("nobody", "configured"));
});

test("a break is recovered from the last number", async () => {
  const registry = new Registry();
  registry.subscribed("t", { logId: "one", seq: 5, reset: true });
  assert.deepEqual([6, 6, 2, 7].map((seq) => registry.saw("t", seq)), [true, false, false, true]);
  const params = { threadId: "t", input: [] };
  const name = registry.sending("t", params);
  assert.equal(registry.sending("t", params), name, "a name that it has stays");
  // The thread was loaded anew: its numbers count in another log, and earlier ones come again.
  const server = new Calls({ logId: "two", seq: 9, reset: false }, { turn: {} });
  await registry.recover(server);
  assert.deepEqual(server.calls, [
    ["thread/subscribe", { threadId: "t", after: 7, logId: "one" }],
    ["turn/start", params],
  ]);
  assert.deepEqual([3, 4, 4].map((seq) => registry.saw("t", seq)), [true, true, false]);
  const again = new Calls({ logId: "two", seq: 9, reset: false });
  await registry.recover(again);
  assert.deepEqual(again.calls, [["thread/subscribe", { threadId: "t", after: 4, logId: "two" }]]);
});

test("the number of being caught up counts", async () => {
  const registry = new Registry();
  registry.subscribed("t", { logId: "one", seq: 5, reset: false });
  const last = async () => {
    const server = new Calls({ logId: "one", seq: 9, reset: false });
    await registry.recover(server);
    return server.calls[0][1].after;
  };
  const caughtUp = (logId, seq) =>
    registry.note({ type: "other", method: "thread/caughtUp", params: { threadId: "t", logId, seq } });
  caughtUp("two", 5);
  assert.equal(await last(), null, "it counts in another log");
  caughtUp("one", 5);
  caughtUp("one", 4);
  assert.equal(await last(), 5, "it does not go back");
  assert.deepEqual([5, 6].map((seq) => registry.saw("t", seq)), [false, true]);
});

test("a turn that runs nowhere any more has ended", () => {
  const registry = new Registry();
  registry.follow("t");
  const caughtUp = { type: "other", method: "thread/caughtUp", params: { threadId: "t" } };
  const answer = (type) => ({ logId: "one", seq: 5, reset: false, thread: { status: { type } } });
  const started = (turn, seq) => registry.note({ type: "turnStarted", thread: "t", turn }, seq);
  started("u", 3);
  registry.subscribed("t", answer("active"));
  assert.equal(registry.note(caughtUp), undefined, "it runs");
  registry.subscribed("t", answer("idle"));
  const end = { type: "turnEnded", thread: "t", turn: "u", status: "interrupted", error: null };
  assert.deepEqual(registry.note(caughtUp), end);
  assert.equal(registry.note(caughtUp), undefined, "it ends once");
  registry.subscribed("t", answer("idle"));
  started("v", 5);
  assert.equal(registry.note(caughtUp)?.turn, "v", "its start was missed, and it does not run");
  // A server may say that it has caught up only after its next event, which may be the start of a turn.
  for (const reset of [false, true]) {
    registry.subscribed("t", { ...answer("idle"), logId: "two", reset });
    started("v", 6);
    assert.equal(registry.note(caughtUp), undefined, "it has started since, and runs");
    registry.note({ type: "turnEnded", thread: "t", turn: "v" });
  }
});

test("a server of another release sends the whole thread; a thread that is gone is named", async () => {
  const registry = new Registry();
  registry.follow("t");
  registry.follow("u");
  const refusal = () => new CallError("thread/subscribe", "unknown variant", -32600);
  const server = new Calls(refusal(), { thread: {} }, refusal(), new CallError("thread/resume", "not found", -32600));
  const refused = await registry.recover(server);
  assert.deepEqual(server.calls.map(([method]) => method).join(" "), "thread/subscribe thread/resume thread/subscribe thread/resume");
  assert.deepEqual([...refused.keys()], ["u"]);
  await assert.rejects(registry.recover(new Calls(new CallError("thread/subscribe", "the connection is closed"))));
});
