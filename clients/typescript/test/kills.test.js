// Servers and clients that are killed at random moments of a turn, in turns.
//
// CODEX_TEST_KILLS is the number of kills.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import test from "node:test";
import { fileURLToPath } from "node:url";

import { Codex } from "../src/index.js";
import { PROGRAM, isAlive, says, scripted } from "./server.js";

const KILLS = Number(process.env.CODEX_TEST_KILLS ?? 4);
const AT_ONCE = 8;
const WITHIN_MS = 500;
const PATIENCE_MS = 60_000;
const TEXT = { text: "one two three", deltas: ["one ", { pause_ms: 20 }, "two ", { pause_ms: 20 }, "three"] };
const CALL = { call: "shell", args: { command: ["bash", "-lc", "echo out; sleep 0.02; echo put"] } };
const ANSWERS = [
  says("Again.", { when: "Once more", repeat: true }),
  { items: [{ reasoning: ["Hm."] }, TEXT, CALL] },
  { items: [TEXT] },
];

const chance = () => Math.random() * WITHIN_MS;
const read = (codex, id) => codex.call("thread/read", { threadId: id, includeTurns: true });

/** Runs a turn, kills its server at some moment, and runs another one; returns the end of the first. */
async function killServer(options) {
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
      if (event.type === "thread.started") timer = setTimeout(kill, chance());
    }
    clearTimeout(timer);
    if (!isKilled) kill();
    const ends = told.filter(({ type }) => type === "turn.completed" || type === "turn.failed");
    assert.deepEqual(ends, [told.at(-1)]);
    if (ends[0].type === "turn.failed") assert.equal(ends[0].error.message, "the turn was interrupted");
    const completed = told.filter(({ type }) => type === "item.completed").map(({ item }) => item.id);
    assert.equal(new Set(completed).size, completed.length, "no item is reported twice");
    assert.equal((await thread.run("Once more.")).finalResponse, "Again.");
    const { thread: stored } = await read(codex, thread.id);
    assert.equal(stored.turns.length, 2, "no turn is lost or doubled");
    if (ends[0].type === "turn.completed") {
      const kept = stored.turns[0].items.filter(({ type }) => type !== "userMessage");
      assert.equal(completed.length, kept.length, "no item of a complete turn is missing");
    }
    return `server killed, ${ends[0].type}`;
  } finally {
    await codex.close();
  }
}

/** Kills a client in a process of its own; another one sends its turn again, and goes on. */
async function killClient(options) {
  const name = crypto.randomUUID();
  const script = fileURLToPath(new URL("killed_client.js", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify({ options, name })], { stdio: ["ignore", "pipe", "inherit"] });
  const [id] = await once(createInterface({ input: child.stdout }), "line");
  await new Promise((resolve) => setTimeout(resolve, chance()));
  child.kill("SIGKILL");
  await once(child, "exit");
  const codex = new Codex(options);
  try {
    await resumed(codex, id);
    const input = [{ type: "text", text: "Begin." }];
    const ended = new Promise((resolve) => {
      codex.subscribe((event) => event.type === "turnEnded" && resolve());
    });
    const { turn } = await codex.call("turn/start", { threadId: id, input, clientUserMessageId: name });
    if (turn.status === "inProgress") await ended;
    const { thread: stored } = await read(codex, id);
    assert.equal(stored.turns.length, 1, "no turn is lost or doubled");
    assert.match(stored.turns[0].status, /^(completed|interrupted)$/);
    const items = stored.turns[0].items.map((item) => item.id);
    assert.equal(new Set(items).size, items.length, "no item is doubled");
    assert.equal((await codex.resumeThread(id).run("Once more.")).finalResponse, "Again.");
    return `client killed, turn.${stored.turns[0].completedAt === null ? "cut" : stored.turns[0].status}`;
  } finally {
    await codex.close();
  }
}

/** Resumes a thread, once the server of the killed client has noticed the end of its input. */
async function resumed(codex, id) {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await codex.call("thread/resume", { threadId: id });
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** The processes that work in a folder, or have it in their environment. */
function processes(folder) {
  const isThere = (pid) => {
    try {
      return (
        isAlive(pid) &&
        (readFileSync(`/proc/${pid}/environ`, "latin1").includes(folder) ||
          readlinkSync(`/proc/${pid}/cwd`).startsWith(folder))
      );
    } catch {
      return false;
    }
  };
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isThere(name));
}

const skip = !PROGRAM ? "set CODEX_BIN to a codex program" : process.platform === "linux" ? false : "it reads /proc";

test("nothing is lost or doubled, and no process is left", { skip }, async (context) => {
  const { options, folder } = scripted(context, ANSWERS);
  const ends = {};
  for (let start = 0; start < KILLS; start += AT_ONCE) {
    const count = Math.min(AT_ONCE, KILLS - start);
    const batch = Array.from({ length: count }, (_, at) => (at % 2 === 0 ? killServer(options) : killClient(options)));
    for (const end of await Promise.all(batch)) ends[end] = (ends[end] ?? 0) + 1;
  }
  context.diagnostic(`${KILLS} kills: ${JSON.stringify(ends)}`);
  const until = Date.now() + PATIENCE_MS;
  while (processes(folder).length > 0) {
    assert.ok(Date.now() < until, `these are left: ${processes(folder)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
});
