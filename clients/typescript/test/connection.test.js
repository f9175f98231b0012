// A connection with a server that a test plays, line by line.

import assert from "node:assert/strict";
import test from "node:test";

import { allow, allowAll, deny, encode, grant, toolResult } from "../src/approvals.js";
import { Backoff } from "../src/backoff.js";
import { Events, connect } from "../src/connection.js";
import { Registry } from "../src/registry.js";

/** A server's side, which answers the handshake by itself. */
class Server {
  lines = [];
  waiting = [];

  async connected(options = {}) {
    const connecting = connect((receive, ended) => {
      this.write = (message) => receive(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
      this.bytes = receive;
      this.raw = (text) => receive(new TextEncoder().encode(text));
      this.ended = ended;
      return { send: (line) => this.take(JSON.parse(line)), close: ended };
    }, options);
    const hello = await this.read();
    assert.equal(hello.method, "initialize");
    this.write({ id: hello.id, result: { userAgent: "codex/0.200.0" } });
    const client = await connecting;
    assert.deepEqual(await this.read(), { method: "initialized" });
    return client;
  }

  take(message) {
    const waiting = this.waiting.shift();
    if (waiting) waiting(message);
    else this.lines.push(message);
  }

  read() {
    const line = this.lines.shift();
    return line === undefined ? new Promise((resolve) => this.waiting.push(resolve)) : Promise.resolve(line);
  }
}

const COMMAND = "item/commandExecution/requestApproval";
const next = async (client) => (await client.events.next()).value;

test("calls are answered in any order", async () => {
  const server = new Server();
  const client = await server.connected();
  const calls = ["a", "b"].map((method) => client.call(method, { of: method }));
  const requests = [await server.read(), await server.read()];
  for (const { id, params } of requests.reverse()) server.write({ id, result: params });
  assert.deepEqual(await Promise.all(calls), [{ of: "a" }, { of: "b" }]);
});

test("an overloaded server is asked again, another error is told", async () => {
  const server = new Server();
  const client = await server.connected();
  const calling = client.call("busy");
  server.write({ id: (await server.read()).id, error: { code: -32001, message: "later" } });
  server.write({ id: (await server.read()).id, result: "done" });
  assert.equal(await calling, "done");
  const wrong = client.call("wrong");
  server.write({ id: (await server.read()).id, error: { code: -32600, message: "no" } });
  await assert.rejects(wrong, { name: "CallError", code: -32600, message: "wrong: no (code -32600)" });
});

test("a call has a deadline, can be aborted, and its late answer is one to nobody", async () => {
  const server = new Server();
  const client = await server.connected();
  await assert.rejects(client.call("slow", {}, { deadlineMs: 1 }), /slow: no answer within/);
  server.write({ id: (await server.read()).id, result: 1 });
  assert.match((await next(client)).text, /nobody/);
  const controller = new AbortController();
  const calling = client.call("slow", {}, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(calling, /enough/);
});

test("the end of the server ends all calls and events", async () => {
  const server = new Server();
  const client = await server.connected();
  const calling = client.call("never");
  server.ended();
  await assert.rejects(calling, /the connection is closed/);
  assert.equal((await client.events.next()).done, true);
});

test("questions wait without blocking the reader", async () => {
  let decide;
  const decision = new Promise((resolve) => (decide = resolve));
  const server = new Server();
  const client = await server.connected({ approvals: () => decision });
  server.write({ id: "q", method: COMMAND, params: { threadId: "t" } });
  server.write({ method: "warning", params: { message: "goes on" } });
  assert.equal((await next(client)).type, "asked");
  assert.equal((await next(client)).message, "goes on");
  decide(allow());
  assert.deepEqual(await server.read(), { id: "q", result: { decision: "accept" } });
  assert.equal((await next(client)).type, "resolved");
});

test("a question that is asked again has one answer, and none if somebody else has answered it", async () => {
  let decide;
  const decision = new Promise((resolve) => (decide = resolve));
  const server = new Server();
  await server.connected({ approvals: ({ id }) => (id === 9 ? allow() : decision) });
  const ask = (id) => server.write({ id, method: COMMAND, params: { threadId: "t" } });
  [7, 7, 8].forEach(ask);
  server.write({ method: "serverRequest/resolved", params: { threadId: "t", requestId: 8 } });
  decide(allow());
  assert.equal((await server.read()).id, 7);
  ask(9);
  assert.equal((await server.read()).id, 9);
  assert.deepEqual(server.lines, []);
});

test("nobody, a mistake and a late answer mean no", async () => {
  const handlers = [
    undefined,
    () => {
      throw new Error("a mistake");
    },
    () => new Promise(() => {}),
    () => {},
    () => "yes",
    () => ({ kind: "allowWithAmendment" }),
  ];
  for (const approvals of handlers) {
    const server = new Server();
    await server.connected({ approvals, approvalDeadlineMs: 5 });
    server.write({ id: 1, method: COMMAND, params: { threadId: "t" } });
    assert.deepEqual(await server.read(), { id: 1, result: { decision: "decline" } });
  }
});

test("decisions are told in the words of the question", () => {
  assert.deepEqual(encode("execCommandApproval", allow()), { result: { decision: "approved" } });
  assert.deepEqual(encode("applyPatchApproval", deny()), { result: { decision: "denied" } });
  const elicitation = "mcpServer/elicitation/request";
  assert.deepEqual(encode(elicitation, allowAll({ method: elicitation })), {
    result: { action: "decline", content: null },
  });
  assert.equal(encode("from/the/future", allow()).error.code, -32601);
  assert.equal(encode("item/tool/call", allow()).error.code, -32601);
  assert.deepEqual(encode("item/tool/call", toolResult("seven")), {
    result: { contentItems: [{ type: "inputText", text: "seven" }], success: true },
  });
  const asked = { params: { permissions: { network: {} } } };
  assert.deepEqual(encode("item/permissions/requestApproval", grant(asked, true)), {
    result: { permissions: { network: {} }, scope: "session" },
  });
});

test("noise is tolerated up to a bound", async () => {
  const server = new Server();
  const client = await server.connected();
  server.raw("npm warn something is old\n");
  assert.equal((await next(client)).type, "note");
  assert.equal(client.isClosed, false);
  for (let count = 0; count < 70; count += 1) server.raw(`${"x".repeat(1024)}\n`);
  assert.equal(client.isClosed, true);
});

test("half a character, a line of 40 MB, a second answer and a number that goes back cost a note each", async () => {
  const registry = new Registry();
  registry.subscribed("t", { logId: "log", seq: 3, reset: true });
  const server = new Server();
  const client = await server.connected({ registry });
  const warning = new TextEncoder().encode(`{"method":"warning","params":{"message":"ä€😀"}}\n`);
  for (const byte of warning) server.bytes(Uint8Array.of(byte));
  assert.equal((await next(client)).message, "ä€😀");
  server.raw('{"method":"warning","params":{"message":"\\ud800"}}\n');
  assert.equal((await next(client)).type, "note");
  server.raw(`{"method":"item/created","params":{"item":{"content":${"[".repeat(200_000)}${"]".repeat(200_000)}}}}\n`);
  assert.equal((await next(client)).type, "note");
  for (let count = 0; count < 40; count += 1) server.bytes(new Uint8Array(1 << 20).fill(120));
  server.raw("\n");
  assert.equal((await next(client)).text, `a line is too long (${40 << 20} bytes)`);
  const calling = client.call("once");
  const { id } = await server.read();
  for (const result of [1, 2]) server.write({ id, result });
  assert.equal(await calling, 1);
  assert.match((await next(client)).text, /nobody/);
  for (const seq of [4, 4, 5]) {
    server.write({ method: "turn/started", params: { threadId: "t", turn: { id: String(seq) } }, seq });
  }
  const types = [await next(client), await next(client), await next(client)].map(({ type }) => type);
  assert.deepEqual(types, ["turnStarted", "note", "turnStarted"]);
  assert.equal(client.isClosed, false);
});

test("a turn that a new server does not run ends before the next event", async () => {
  const registry = new Registry();
  registry.follow("t");
  const server = new Server();
  const client = await server.connected({ registry });
  registry.subscribed("t", { logId: "log", seq: 5, reset: false, thread: { status: { type: "idle" } } });
  server.write({ method: "turn/started", params: { threadId: "t", turn: { id: "u" } }, seq: 4 });
  server.write({ method: "thread/caughtUp", params: { threadId: "t" } });
  server.write({ method: "turn/started", params: { threadId: "t", turn: { id: "v" } }, seq: 6 });
  const told = [await next(client), await next(client), await next(client), await next(client)];
  assert.deepEqual(told.map(({ type }) => type), ["turnStarted", "other", "turnEnded", "turnStarted"]);
  assert.deepEqual([told[2].turn, told[2].status], ["u", "interrupted"]);
});

test("a result that is no JSON is a denial, parameters that are none an error", async () => {
  const server = new Server();
  const client = await server.connected({ approvals: () => ({ kind: "result", value: 1n }) });
  server.write({ id: 1, method: COMMAND, params: { threadId: "t" } });
  assert.deepEqual(await server.read(), { id: 1, result: { decision: "decline" } });
  await assert.rejects(client.call("wrong", { x: 1n }), /wrong: cannot be sent/);
});

test("a program that sleeps costs little and misses no end", async () => {
  const events = new Events();
  const delta = { type: "delta", thread: "t", turn: "u", item: "a", part: "message", index: 0, teller: 3 };
  for (let count = 0; count < 200_000; count += 1) events.push({ ...delta, text: "some forty bytes of an answer" });
  events.push({ type: "turnEnded", thread: "t" });
  events.close();
  const { value } = await events.next();
  assert.ok(value.text.length <= 4 * 1024 * 1024);
  assert.equal((await events.next()).value.type, "turnEnded");
  assert.equal((await events.next()).value.type, "note");
  assert.equal((await events.next()).done, true);
});

test("waits grow to their end and begin anew after a healthy minute", () => {
  const backoff = new Backoff();
  const waits = [];
  for (let next; (next = backoff.next(0, 0)); ) waits.push(next.delayMs / 1000);
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]);
  assert.equal(backoff.next(60_000, 0).attempt, 1);
});

test("a call that waits to be tried again can be aborted, and a deadline may be endless", async (context) => {
  const server = new Server();
  const client = await server.connected({ deadlineMs: Infinity });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const controller = new AbortController();
  const calling = client.call("busy", {}, { signal: controller.signal });
  server.write({ id: (await server.read()).id, error: { code: -32001, message: "busy" } });
  await new Promise((resolve) => setImmediate(resolve));
  controller.abort(new Error("enough"));
  await assert.rejects(calling, /enough/);
  const slow = client.call("slow");
  context.mock.timers.tick(3600_000);
  server.write({ id: (await server.read()).id, result: 7 });
  assert.equal(await slow, 7);
});

test("a question that is open when the connection ends keeps nothing alive", async (context) => {
  const server = new Server();
  let isAsked;
  const asked = new Promise((resolve) => (isAsked = resolve));
  const never = () => new Promise(() => isAsked());
  const set = context.mock.method(globalThis, "setTimeout");
  const cleared = context.mock.method(globalThis, "clearTimeout");
  await server.connected({ approvals: never, approvalDeadlineMs: 12_345 });
  server.write({ id: 1, method: COMMAND, params: { threadId: "t" } });
  await asked;
  server.ended();
  await new Promise((resolve) => setImmediate(resolve));
  const timer = set.mock.calls.find(({ arguments: [, wait] }) => wait === 12_345).result;
  assert.ok(cleared.mock.calls.some(({ arguments: [other] }) => other === timer));
  assert.deepEqual(server.lines, [], "there is no answer");
});
