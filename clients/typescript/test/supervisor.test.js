// A supervisor with servers that are small shell scripts.

import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";

import { Supervisor } from "../src/supervisor.js";
import { isAlive, isGone } from "./server.js";

// Answers each request with the process ids of itself and of a child that it has started.
const SERVER = String.raw`
sleep 1000 & child=$!
echo "server starts" >&2
n=1
while read -r line; do
  case "$line" in
    *'"id":'*) echo "{\"id\":$n,\"result\":{\"userAgent\":\"sh\",\"pids\":[$$,$child]}}"; n=$((n+1));;
  esac
done
AFTER
`;
const launch = (after, more = {}) => ({ program: "/bin/sh", args: ["-c", SERVER.replace("AFTER", after)], ...more });
const onLinux = { skip: process.platform === "linux" ? false : "the scripts are for Linux" };

async function state(supervisor, name) {
  while (supervisor.state.state !== name) await once(supervisor, "state");
  return supervisor.state;
}

test("a server runs until it is stopped, and leaves no child", onLinux, async () => {
  const lines = [];
  // It does not end with its input, so it has to be killed.
  const supervisor = new Supervisor(launch("sleep 1000", { onStderr: (line) => lines.push(line) }));
  const client = await supervisor.start();
  const { pids } = await client.call("pids");
  assert.ok(pids.every(isAlive), pids);
  assert.equal(supervisor.state.state, "running");
  await supervisor.stop();
  assert.equal(supervisor.state.state, "stopped");
  assert.deepEqual(lines, ["server starts"]);
  for (const pid of pids) assert.ok(await isGone(pid));
  await assert.rejects(supervisor.connection(), /stopped/);
});

test("a server that is killed is restarted, though its child holds its output", onLinux, async () => {
  const supervisor = new Supervisor(launch("kill $child"));
  const client = await supervisor.start();
  const { pids: first } = await client.call("pids");
  process.kill(first[0], "SIGKILL");
  assert.equal((await state(supervisor, "restarting")).attempt, 1);
  while (!(await client.events.next()).done);
  const { pids: second } = await (await supervisor.connection()).call("pids");
  assert.notEqual(first[0], second[0]);
  assert.ok(await isGone(first[1]), "the child of the first went with it");
  await supervisor.stop();
});

test("a program that is missing or no server is named, and tried again", onLinux, async () => {
  for (const [program, args, expected] of [
    ["/nowhere/codex", [], /^cannot start \/nowhere\/codex: /],
    ["/bin/sh", ["-c", "echo hello; exit 3"], /^the handshake with \/bin\/sh has failed: initialize/],
  ]) {
    const supervisor = new Supervisor({ program, args });
    await assert.rejects(supervisor.start(), { message: expected });
    const failed = await state(supervisor, "failed");
    assert.match(failed.error, expected);
    assert.ok(failed.restartInMs <= 1000);
    await supervisor.stop();
  }
});

test("listeners and sinks that throw stop nothing", onLinux, async () => {
  const fails = () => {
    throw new Error("a mistake");
  };
  const supervisor = new Supervisor(launch("exit", { onStderr: fails }));
  supervisor.on("state", fails);
  const client = await supervisor.connection();
  assert.ok((await client.call("pids")).pids);
  await supervisor.stop();
});
