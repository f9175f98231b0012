// A supervisor with servers that are small shell scripts.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { PassThrough } from "node:stream";
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
  for (const [program, args, expected, cwd] of [
    ["/nowhere/codex", [], /^cannot start \/nowhere\/codex: there is no such program$/],
    ["/bin/sh", [], /^cannot start \/bin\/sh: there is no folder \/nowhere$/, "/nowhere"],
    ["/bin/sh", ["-c", "echo hello; exit 3"], /^the handshake with \/bin\/sh has failed: initialize/],
  ]) {
    const supervisor = new Supervisor({ program, args, cwd });
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

test("a server that never starts is tried ten times after growing waits", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const supervisor = new Supervisor({ program: "/nowhere/codex" });
  const waits = [];
  const isOver = new Promise((resolve) => {
    supervisor.on("state", ({ state, restartInMs }) => {
      if (state !== "failed") return;
      if (restartInMs === undefined) return resolve();
      waits.push(restartInMs);
      // The wait begins after its state is told.
      setImmediate(() => context.mock.timers.tick(restartInMs));
    });
  });
  supervisor.start().catch(() => {});
  await isOver;
  const longest = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30];
  assert.equal(waits.length, longest.length);
  for (const [place, wait] of waits.entries()) {
    assert.ok(wait <= longest[place] * 1000 && wait >= longest[place] * 800, `${place}: ${wait}`);
  }
});

test("the two halves of a pipe are used once", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  output.on("data", (line) => {
    const { id, method } = JSON.parse(line);
    if (method === "leave") input.end();
    else if (id !== undefined) input.write(`${JSON.stringify({ id, result: { number: 7 } })}\n`);
  });
  const supervisor = new Supervisor({ input, output });
  const client = await supervisor.start();
  assert.deepEqual(await client.call("number"), { number: 7 });
  await assert.rejects(client.call("leave"), /closed/);
  await assert.rejects(supervisor.connection(), /the other end of the pipe is gone/);
  assert.deepEqual(supervisor.state, { state: "failed", error: "the other end of the pipe is gone" });
  await supervisor.stop();
});

test("stopping does not wait for a server that does not greet", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const supervisor = new Supervisor({ address: `ws://127.0.0.1:${server.address().port}`, token: "x" });
  const starting = assert.rejects(supervisor.start(), /stopped/);
  const [socket] = await once(server, "connection");
  const begun = performance.now();
  await supervisor.stop();
  assert.ok(performance.now() - begun < 4000);
  await starting;
  socket.destroy();
  server.close();
});
