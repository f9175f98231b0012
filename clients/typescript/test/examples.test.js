// The examples, with the real program and a scripted model.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import test from "node:test";

import { PROGRAM, needsProgram, runs, says, scripted } from "./server.js";

const example = (name) => new URL(`../examples/${name}`, import.meta.url).pathname;

/** Runs an example in a workspace of its own, where `codex` plays a script. */
function run(context, answers, name, args = [], { input = "", prepare = () => {} } = {}) {
  const { folder, work } = scripted(context, answers);
  symlinkSync(PROGRAM, join(folder, "codex"));
  const script = JSON.stringify(join(folder, "answers.json"));
  const config = `model_provider = "scripted"\napproval_policy = "untrusted"\nsandbox_mode = "workspace-write"\n`;
  writeFileSync(join(folder, "home", "config.toml"), `${config}[model_providers.scripted]\nscript = ${script}\n`);
  prepare(work);
  const PATH = `${folder}${delimiter}${process.env.PATH}`;
  const env = { ...process.env, PATH, CODEX_HOME: join(folder, "home") };
  const done = spawnSync(process.execPath, [example(name), ...args], { cwd: work, env, input, timeout: 60_000 });
  return { work, status: done.status, out: String(done.stdout), err: String(done.stderr) };
}

/** A repository with a change since `main`. */
function repository(work) {
  const git = (...args) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: work });
  git("init", "-q", "-b", "main");
  git("commit", "-q", "--allow-empty", "-m", "first");
  git("checkout", "-q", "-b", "change");
  writeFileSync(join(work, "new.txt"), "new\n");
  git("add", ".");
  git("commit", "-q", "-m", "second");
}

test("quickstart has at most 20 lines and answers", needsProgram, (context) => {
  assert.ok(readFileSync(example("quickstart.js"), "utf8").trimEnd().split("\n").length <= 20);
  const { status, out, err } = run(context, [says("- one\n- two\n- three")], "quickstart.js");
  assert.deepEqual([status, out], [0, "- one\n- two\n- three\n"], err);
});

test("the gate opens and closes", needsProgram, (context) => {
  const verdict = (word) => [says(JSON.stringify({ verdict: word, reasons: ["because"] }), { when: "new.txt" })];
  for (const [answers, expected] of [
    [verdict("merge"), [0, "- because\nmerge\n"]],
    [verdict("reject"), [1, "- because\nreject\n"]],
    [[says("I follow the diff."), says("Again."), says("Again.")], [2, ""]],
  ]) {
    const { status, out, err } = run(context, answers, "gate.js", ["main"], { prepare: repository });
    assert.deepEqual([status, out], expected, err);
  }
});

test("the chat answers, asks, and keeps control characters to itself", needsProgram, (context) => {
  const answers = [says("Hello\u001b]0;evil\u0007."), runs("touch made"), says("Made.")];
  const { status, out, err, work } = run(context, answers, "chat.js", [], { input: "Hi.\nMake it.\ny\n" });
  assert.equal(status, 0, err);
  assert.match(out, /> Hello\]0;evil\.\n/);
  assert.match(out, /allow .*touch made.*\? \[y\/N\] /);
  assert.match(out, /Made\.\n/);
  assert.ok(existsSync(join(work, "made")));
});
