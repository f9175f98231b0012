// The conventions of the SDK with the real program and a scripted model.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { Codex, TurnError, approvals, markdown, replayed } from "../src/index.js";
import { TurnEvents, configArgs, threadParams } from "../src/conventions.js";
import { isGone, needsProgram, runs, says, scripted } from "./server.js";

const HANGS = { items: [{ text: "Hal", done: false }, { hang: true }] };
const collect = async (events) => {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
};

async function with_(context, answers, use, more) {
  const { options, ...rest } = scripted(context, answers, more);
  const codex = new Codex(options);
  try {
    return await use(codex, rest);
  } finally {
    await codex.close();
  }
}

test("a thread runs turns", needsProgram, (context) =>
  with_(context, [says("One."), says("Two.")], async (codex, { work }) => {
    const thread = codex.startThread({ workingDirectory: work, skipGitRepoCheck: true });
    assert.equal(thread.id, null);
    const turn = await thread.run("Count.");
    assert.equal(turn.finalResponse, "One.");
    assert.deepEqual(turn.items.map(({ type }) => type), ["agent_message"]);
    assert.ok(turn.usage.input_tokens > 0 && turn.usage.reasoning_output_tokens >= 0);
    assert.equal((await thread.run([{ type: "text", text: "More." }])).finalResponse, "Two.");
    assert.equal(typeof thread.id, "string");
  }),
);

test("events are those of the official SDK", needsProgram, (context) => {
  const plan = { items: [{ call: "update_plan", args: { plan: [{ step: "Look", status: "completed" }] } }] };
  return with_(context, [plan, runs("echo hi"), says("Done.")], async (codex, { work }) => {
    const { events } = await codex.startThread({ workingDirectory: work }).runStreamed("Go.");
    const told = (await collect(events)).map(({ type, item }) => (item ? `${type} ${item.type}` : type));
    assert.deepEqual(told, [
      "thread.started",
      "turn.started",
      "item.started todo_list",
      "item.started command_execution",
      "item.completed command_execution",
      "item.completed agent_message",
      "item.completed todo_list",
      "turn.completed",
    ]);
  });
});

test("a signal interrupts a turn, and the next one runs", needsProgram, (context) =>
  with_(context, [HANGS, says("Next.")], async (codex) => {
    const thread = codex.startThread();
    const controller = new AbortController();
    const { events } = await thread.runStreamed("Wait.", { signal: controller.signal });
    await assert.rejects(async () => {
      for await (const event of events) if (event.type === "turn.started") controller.abort(new Error("enough"));
    }, /enough/);
    assert.equal((await thread.run("And now?")).finalResponse, "Next.");
    await assert.rejects(thread.run("No.", { signal: AbortSignal.abort(new Error("before")) }), /before/);
  }),
);

test("a loop that ends early interrupts its turn", needsProgram, (context) =>
  with_(context, [HANGS, says("Next.")], async (codex) => {
    const thread = codex.startThread();
    const { events } = await thread.runStreamed("Wait.");
    for await (const event of events) if (event.type === "turn.started") break;
    assert.equal((await thread.run("And now?")).finalResponse, "Next.");
  }),
);

test("a turn that fails says why", needsProgram, (context) => {
  const failing = { items: [], end: { failed: { code: "invalid_prompt", message: "not like this" } } };
  return with_(context, [failing], (codex) =>
    assert.rejects(codex.startThread().run("Fail."), (error) => error instanceof TurnError && /not like/.test(error.message)),
  );
});

test("threads are listed, forked, resumed, given goals and deleted", needsProgram, (context) =>
  with_(context, [says("Yes.", { repeat: true })], async (codex) => {
    const thread = codex.startThread();
    await thread.run("First.");
    const fork = await codex.forkThread(thread.id);
    assert.notEqual(fork.id, thread.id);
    assert.equal((await fork.run("Here?")).finalResponse, "Yes.");
    assert.equal((await codex.resumeThread(thread.id).run("Again.")).finalResponse, "Yes.");
    const list = async () => (await codex.listThreads({ modelProviders: [] })).data.map(({ id }) => id);
    assert.deepEqual(new Set(await list()), new Set([thread.id, fork.id]));
    await codex.deleteThread(fork.id);
    assert.deepEqual(await list(), [thread.id]);
    assert.equal((await codex.setGoal(thread.id, { objective: "tidy up", tokenBudget: 1 })).objective, "tidy up");
    assert.equal((await codex.getGoal(thread.id)).tokenBudget, 1);
    await codex.clearGoal(thread.id);
    assert.equal(await codex.getGoal(thread.id), null);
  }),
);

test("an approval waits while the connection goes on", needsProgram, async (context) => {
  let decide;
  const asked = new Promise((resolve) => {
    decide = async () => {
      await new Promise((answered) => resolve(answered));
      return approvals.allow();
    };
  });
  const more = { approvals: () => decide() };
  await with_(context, [runs("touch made"), says("Made.")], async (codex, { work }) => {
    const options = { workingDirectory: work, approvalPolicy: "untrusted", sandboxMode: "workspace-write" };
    const running = codex.startThread(options).run("Make it.");
    const answer = await asked;
    assert.ok(Array.isArray((await codex.listThreads()).data));
    answer();
    assert.equal((await running).finalResponse, "Made.");
    assert.ok(existsSync(join(work, "made")));
  }, more);
});

test("a turn survives the death of its server", needsProgram, (context) =>
  with_(context, [says("Again.", { when: "Once more" }), HANGS], async (codex) => {
    const thread = codex.startThread();
    const { events } = await thread.runStreamed("Wait.");
    const told = [];
    for await (const { type } of events) {
      told.push(type);
      if (type === "turn.started") process.kill(codex.pid, "SIGKILL");
    }
    assert.deepEqual(told.slice(0, 2), ["thread.started", "turn.started"]);
    assert.equal(told.at(-1), "turn.failed");
    assert.equal((await thread.run("Once more.")).finalResponse, "Again.");
  }),
);

test("a subscriber that throws, at once or later, costs one note", needsProgram, (context) =>
  with_(context, [says("Fine.")], async (codex) => {
    const seen = [];
    codex.subscribe(() => {
      throw new Error("a mistake");
    });
    codex.subscribe(async () => {
      throw new Error("a later mistake");
    });
    codex.subscribe(() => new Promise(() => {}));
    const end = codex.subscribe((event) => seen.push(event));
    assert.equal((await codex.startThread().run("Hello.")).finalResponse, "Fine.");
    end();
    assert.ok(seen.some(({ type }) => type === "turnEnded"));
    const notes = seen.filter(({ type }) => type === "note").map(({ text }) => text);
    assert.deepEqual(notes.sort(), ["a subscriber has failed: a later mistake", "a subscriber has failed: a mistake"]);
  }));

test("a subscriber that hangs costs one note and a bounded number of events", async (context) => {
  const { folder } = scripted(context, []);
  const program = join(folder, "server");
  const source = `#!${process.execPath}
    process.stdin.once("data", (line) => {
      process.stdout.write(JSON.stringify({ id: JSON.parse(String(line).split("\\n")[0]).id, result: {} }) + "\\n");
      const warning = JSON.stringify({ method: "warning", params: { threadId: "t", message: "w" } }) + "\\n";
      process.stdout.write(warning.repeat(1500) + JSON.stringify({ method: "error", params: { message: "last" } }) + "\\n");
    });
    process.stdin.on("end", () => process.exit());`;
  writeFileSync(program, source, { mode: 0o755 });
  const codex = new Codex({ codexPathOverride: program });
  const seen = [];
  let begun = 0;
  codex.subscribe(() => {
    begun += 1;
    return new Promise(() => {});
  });
  const isOver = new Promise((resolve) => {
    codex.subscribe((event) => seen.push(event) && event.type === "error" && resolve());
  });
  await codex.client();
  await isOver;
  await codex.close();
  assert.equal(begun, 1000);
  assert.equal(seen.filter(({ type }) => type === "warning").length, 1500);
  const notes = seen.filter(({ type }) => type === "note").map(({ text }) => text);
  assert.deepEqual(notes, ["a subscriber has failed: it is too slow"]);
});

test("a program that forgets to close ends, and leaves no server", needsProgram, async (context) => {
  const { options, folder } = scripted(context, [says("Fine.")]);
  const source = `
    import { Codex } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
    import { writeFileSync } from "node:fs";
    const codex = new Codex(${JSON.stringify(options)});
    console.log((await codex.startThread().run("Hello.")).finalResponse);
    writeFileSync(${JSON.stringify(join(folder, "pid"))}, String(codex.pid));`;
  const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", source], { timeout: 30_000 });
  assert.deepEqual([String(stdout), status], ["Fine.\n", 0]);
  assert.ok(await isGone(readFileSync(join(folder, "pid"), "utf8")));
});

test("a program stays while a turn runs that it has started by its method", needsProgram, (context) => {
  const { options } = scripted(context, [{ items: [{ pause_ms: 300 }, { text: "Fine." }] }]);
  const source = `
    import { Codex } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
    const codex = new Codex(${JSON.stringify(options)});
    const ended = new Promise((resolve) => codex.subscribe((event) => event.type === "turnEnded" && resolve(event)));
    const { thread } = await codex.call("thread/start");
    await codex.call("turn/start", { threadId: thread.id, input: [{ type: "text", text: "Hello." }] });
    console.log((await ended).status);`;
  const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", source], { timeout: 30_000 });
  assert.deepEqual([String(stdout), status], ["completed\n", 0]);
});

test("a recorded thread is replayed, and exported as the program does", needsProgram, (context) => {
  const { options } = scripted(context, [runs("echo one; exit 3"), says("It is *done*.")]);
  const { codexPathOverride: program, env } = options;
  const codex = new Codex(options);
  const work = async () => {
    const thread = codex.startThread({ approvalPolicy: "never" });
    await thread.run("Do it.");
    await codex.close();
    const state = await replayed(thread.id, { program, env });
    const exported = spawnSync(program, ["threads", "export", thread.id], { env, timeout: 60_000 });
    assert.equal(markdown(state.threads.get(thread.id)), String(exported.stdout));
    await assert.rejects(replayed("nothing.jsonl", { program, env }), /ended with status \d+: .*nothing\.jsonl/s);
    await assert.rejects(replayed("x", { program: "/nowhere/codex" }), /cannot start \/nowhere\/codex/);
  };
  return work().finally(() => codex.close());
});

test("a program that is missing is an error at once", async () => {
  const codex = new Codex({ codexPathOverride: "/nowhere/codex" });
  await assert.rejects(codex.startThread().run("Hello."), /cannot start \/nowhere\/codex/);
  await codex.close();
});

test("options are those of the command line and of the protocol", () => {
  const config = { a: true, b: { c: [1, "x\n"], "d e": { f: {} } }, g: undefined };
  const args = ["--config", "a=true", "--config", 'b.c=[1, "x\\n"]', "--config", 'b."d e".f={}'];
  assert.deepEqual(configArgs(config), args);
  assert.throws(() => configArgs({ a: null }), /null cannot be a value/);
  assert.deepEqual(threadParams({ model: "m", modelReasoningEffort: "high", networkAccessEnabled: true }), {
    model: "m",
    config: { model_reasoning_effort: "high", "sandbox_workspace_write.network_access": true },
  });
});

test("the tokens of a turn are counted without those before it", () => {
  const events = new TurnEvents("u");
  const usage = (total, last) => ({ type: "usage", usage: { total: { inputTokens: total }, last: { inputTokens: last } } });
  [usage(110, 10), usage(130, 20)].forEach((event) => events.take(event));
  const [{ usage: told }] = events.take({ type: "turnEnded", turn: "u", status: "completed" });
  assert.equal(told.input_tokens, 30);
});
