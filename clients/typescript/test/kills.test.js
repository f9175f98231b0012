// Servers that are killed at random moments of a turn.
//
// Opt-in: CODEX_TEST_KILLS is the number of kills.

import assert from "node:assert/strict";
import test from "node:test";

import { Codex } from "../src/index.js";
import { PROGRAM, says, scripted } from "./server.js";

const KILLS = Number(process.env.CODEX_TEST_KILLS ?? 0);
const AT_ONCE = 8;
const TEXT = { text: "one two three", deltas: ["one ", { pause_ms: 20 }, "two ", { pause_ms: 20 }, "three"] };
const CALL = { call: "shell", args: { command: ["bash", "-lc", "echo out; sleep 0.02; echo put"] } };
const ANSWERS = [
  says("Again.", { when: "Once more", repeat: true }),
  { items: [{ reasoning: ["Hm."] }, TEXT, CALL] },
  { items: [TEXT] },
];

/** Runs a turn, kills its server at some moment, and runs another one; returns the end of the first. */
async function one(options) {
  const codex = new Codex(options);
  try {
    const thread = codex.startThread({ sandboxMode: "read-only" });
    const { events } = await thread.runStreamed("Begin.");
    const told = [];
    let timer;
    let isKilled = false;
    const kill = () => {
      isKilled = true;
      process.kill(codex.pid, "SIGKILL");
    };
    for await (const event of events) {
      told.push(event);
      if (event.type === "thread.started") timer = setTimeout(kill, Math.random() * 500);
    }
    clearTimeout(timer);
    if (!isKilled) kill();
    const ends = told.filter(({ type }) => type === "turn.completed" || type === "turn.failed");
    assert.deepEqual(ends, [told.at(-1)]);
    if (ends[0].type === "turn.failed") assert.equal(ends[0].error.message, "the turn was interrupted");
    const completed = told.filter(({ type }) => type === "item.completed").map(({ item }) => item.id);
    assert.equal(new Set(completed).size, completed.length, "no item is reported twice");
    assert.equal((await thread.run("Once more.")).finalResponse, "Again.");
    const { thread: stored } = await codex.call("thread/read", { threadId: thread.id, includeTurns: true });
    assert.equal(stored.turns.length, 2, "no turn is lost or doubled");
    return ends[0].type;
  } finally {
    await codex.close();
  }
}

test("every turn has one end", { skip: KILLS > 0 && PROGRAM ? false : "set CODEX_TEST_KILLS" }, async (context) => {
  const { options } = scripted(context, ANSWERS);
  const ends = {};
  for (let start = 0; start < KILLS; start += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, KILLS - start) }, () => one(options));
    for (const end of await Promise.all(batch)) ends[end] = (ends[end] ?? 0) + 1;
  }
  context.diagnostic(`${KILLS} kills: ${JSON.stringify(ends)}`);
});
