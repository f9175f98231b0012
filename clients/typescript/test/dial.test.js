// Connections to servers that listen on sockets: the frames, the addresses, and the real program.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test from "node:test";

import { addressOf } from "../src/address.js";
import { configArgs } from "../src/conventions.js";
import * as grpc from "../src/grpc.js";
import { Supervisor, dial } from "../src/index.js";
import { Exchange } from "../src/proof.js";
import * as websocket from "../src/websocket.js";
import { needsProgram, says, scripted } from "./server.js";

/** What a reader makes of bytes in pieces of one size. */
function readIn(size, bytes, reader = new websocket.FrameReader()) {
  const read = [];
  for (let at = 0; at < bytes.length; at += size) read.push(...reader.push(bytes.subarray(at, at + size)));
  return read;
}

/** A frame of a server. */
function told(opcode, text, isLast = true) {
  const payload = Buffer.from(text);
  const length = [payload.length];
  if (payload.length > 125) length.splice(0, 1, 126, payload.length >> 8, payload.length & 255);
  return Buffer.concat([Uint8Array.of((isLast ? 128 : 0) | opcode, ...length), payload]);
}

test("proofs are those of the other languages", () => {
  const socket = { remoteAddress: "127.0.0.1", remotePort: 9 };
  const exchange = new Exchange("0123456789abcdef", socket, "a".repeat(64));
  const nonce = "b".repeat(64);
  const server = "3f86427d36807ce9488589e2a174eafa123a54f4b6f5eab120e0c8fa2245d4d6";
  const client = "c6be340cb77df88bb26f2e24ef2e33402c76d319e9e2d39ba249e3d6f08d757f";
  assert.equal(exchange.prove(nonce, `${"0".repeat(64)},${server}`), client);
  for (const [said, proof] of [[nonce, client], [nonce, ""], [nonce], ["c".repeat(64), server], [undefined, server]]) {
    assert.throws(() => exchange.prove(said, proof), /did not prove/);
  }
});

test("a stranger is not sent the token", async () => {
  let heard = "";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      heard += bytes.toString("latin1");
      socket.end('{"id":0,"result":{}}\n');
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const token = "a-token-for-tests-0123456789";
  for (const scheme of ["ws", "tcp", "grpc"]) {
    await assert.rejects(dial(`${scheme}://127.0.0.1:${server.address().port}`, { token }));
  }
  assert.ok(heard.length > 0 && !heard.includes(token));
  server.close();
});

test("addresses are read as in Rust", () => {
  const local = { host: "127.0.0.1", port: 7 };
  assert.deepEqual(addressOf("ws://127.0.0.1:7"), { scheme: "ws", ...local });
  assert.deepEqual(addressOf("tcp://localhost:7/"), { scheme: "tcp", ...local });
  assert.deepEqual(addressOf("grpc://[::1]:80"), { scheme: "grpc", host: "::1", port: 80 });
  assert.deepEqual(addressOf("unix:///run/a b%20.sock"), { scheme: "unix", path: "/run/a b%20.sock" });
  assert.match(addressOf("unix://").path, /run\/app-server\.sock$/);
  for (const [text, hint] of [
    ["std", /use unix:\/\//],
    ["stdio://", /use unix:\/\//],
    ["http://127.0.0.1:1", /use unix:\/\//],
    ["unix://run/x", /three slashes/],
    ["ws://example.org:80", /IP address/],
    ["ws://127.0.0.1", /IP address/],
    ["tcp://localhost:99999", /IP address/],
    ["tcp://[127.0.0.1]:1", /IP address/],
    ["grpc://", /IP address/],
  ]) {
    assert.throws(() => addressOf(text), (error) => hint.test(error.message) && error.isFinal, text);
  }
});

test("frames of WebSocket are the same however they are cut", () => {
  const long = "ä".repeat(200);
  const bytes = Buffer.concat([
    told(1, "one"),
    told(1, "two ", false),
    told(9, "there?"),
    told(0, "parts", false),
    told(0, ""),
    told(10, "a pong is no news"),
    told(1, long),
    told(8, "\u0003é"),
  ]);
  for (const size of [1, 2, 3, 7, 100, bytes.length]) {
    const messages = [Buffer.alloc(0)];
    const others = [];
    for (const frame of readIn(size, bytes)) {
      if (frame.type !== "text") others.push([frame.type, frame.bytes.toString()]);
      else messages.push(Buffer.concat([messages.pop(), frame.bytes]));
      if (frame.isEnd) messages.push(Buffer.alloc(0));
    }
    assert.deepEqual(messages.map(String), ["one", "two parts", long, ""], `pieces of ${size}`);
    assert.deepEqual(others, [["ping", "there?"], ["close", "\u0003é"]]);
  }
});

test("frames that break the rules of WebSocket are refused", () => {
  for (const [bytes, expected] of [
    [[0xc1, 0], /extension/],
    [[0x81, 0x80], /masked/],
    [[0x82, 0], /neither text/],
    [[0x80, 0], /mixed/],
    [[0x01, 0, 0x81, 0], /mixed/],
    [[0x09, 0], /control/],
    [[0x89, 126, 0, 126], /control/],
    [[0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255], /too long/],
  ]) {
    assert.throws(() => readIn(1, Uint8Array.from(bytes)), { message: expected });
  }
});

test("a frame of a client is masked, and has the length that it says", () => {
  for (const length of [0, 125, 126, 65_535, 65_536]) {
    const frame = websocket.frameOf(1, Buffer.alloc(length, "x"));
    const head = length < 126 ? 2 : length < 65_536 ? 4 : 10;
    assert.equal(frame.length, head + 4 + length);
    assert.equal(frame[0], 0x81);
    assert.equal(frame[1] & 0x80, 0x80);
    const mask = frame.subarray(head, head + 4);
    assert.ok(frame.subarray(head + 4).every((byte, at) => (byte ^ mask[at % 4]) === 120));
  }
});

test("messages of gRPC are the same however they are cut, and unknown fields are skipped", () => {
  assert.deepEqual([...grpc.frameOf(Buffer.from("{}"))], [0, 0, 0, 0, 4, 0x0a, 2, 0x7b, 0x7d]);
  const later = Buffer.from([0x10, 5, 0x1a, 1, 0x7a, 0x25, 1, 2, 3, 4, 0x29, 1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 2, 0x7b, 0x7d]);
  const texts = ["{}", "ä".repeat(300), "x".repeat(70_000)];
  const bytes = Buffer.concat([...texts.map((text) => grpc.frameOf(Buffer.from(text))), Uint8Array.of(0, 0, 0, 0, later.length), later]);
  for (const size of [1, 4, 5, 6, 1000, bytes.length]) {
    const lines = Buffer.concat(readIn(size, bytes, new grpc.FrameReader())).toString();
    assert.deepEqual(lines.split("\n"), [...texts, "{}", ""], `pieces of ${size}`);
  }
  for (const wrong of [[1, 0, 0, 0, 0], [0, 0, 0, 0, 4, 0x0a, 5, 0x7b, 0x7d], [0, 0, 0, 0, 2, 0x0b, 0], [0, 0, 0, 0, 1, 0x80]]) {
    assert.throws(() => readIn(1, Uint8Array.from(wrong), new grpc.FrameReader()), /compressed|malformed/);
  }
});

test("a message of gRPC that is too long is passed on in pieces, and the next one is read", () => {
  const reader = new grpc.FrameReader();
  const length = 40 << 20;
  const header = Buffer.alloc(5);
  header.writeUInt32BE(length, 1);
  let count = 0;
  for (const piece of reader.push(header)) count += piece.length;
  for (let megabyte = 0; megabyte < 40; megabyte += 1) {
    for (const piece of reader.push(Buffer.alloc(1 << 20, "x"))) count += piece.length;
  }
  assert.equal(count, length + 1, "with the end of its line");
  assert.equal(Buffer.concat([...reader.push(grpc.frameOf(Buffer.from("{}")))]).toString(), "{}\n");
});

/** Runs a test with a program that listens on all kinds of addresses. */
async function withServer(context, answers, use) {
  const { options, folder, work } = scripted(context, answers);
  const wanted = [`unix://${join(folder, "socket")}`, ...["ws", "tcp", "grpc"].map((name) => `${name}://127.0.0.1:0`)];
  const listen = wanted.flatMap((address) => ["--listen", address]);
  const args = [...configArgs(options.config), "app-server", ...listen];
  const stdio = ["ignore", "ignore", "pipe"];
  const server = spawn(options.codexPathOverride, args, { env: options.env, cwd: work, stdio });
  const addresses = [];
  try {
    for await (const line of createInterface({ input: server.stderr })) {
      if (line.startsWith("listening on") && addresses.push(line.split(" ").at(-1)) === wanted.length) break;
    }
    const token = readFileSync(join(options.env.CODEX_HOME, "run", "app-server.token"), "utf8").trim();
    await use(addresses, token);
  } finally {
    server.kill();
    await once(server, "exit");
  }
  return addresses;
}

test("a server that runs already is reached at any address", needsProgram, async (context) => {
  // A long answer, so that messages have frames of all lengths.
  const text = "Reached. ".repeat(20_000);
  const answers = Array.from({ length: 4 }, () => says(text));
  const addresses = await withServer(context, answers, async (addresses, token) => {
    for (const address of addresses) {
      const client = await dial(address, { token });
      const { thread } = await client.call("thread/start", {});
      await client.call("turn/start", { threadId: thread.id, input: [{ type: "text", text: "Hello. ".repeat(12_000) }] });
      let answer;
      for await (const event of client.events) {
        if (event.type === "itemCompleted" && event.item.type === "agentMessage") answer = event.item.text;
        if (event.type !== "turnEnded") continue;
        assert.equal(event.status, "completed", address);
        break;
      }
      assert.equal(answer, text, address);
      client.close();
      await client.closed;
    }
  });
  for (const address of addresses) await assert.rejects(dial(address, { token: "x" }), /^DialError: cannot connect to /);
});

test("a supervisor dials any address, and a wrong token or none is named", needsProgram, (context) =>
  withServer(context, [], async (addresses, token) => {
    for (const address of addresses) {
      const supervisor = new Supervisor({ address, token });
      const client = await supervisor.connection();
      assert.deepEqual((await client.call("thread/list", {})).data, [], address);
      await supervisor.stop();
      assert.ok(client.isClosed);
      if (address.startsWith("unix:")) continue;
      await assert.rejects(dial(address, { token: "x".repeat(20) }), /cannot connect to .*token/, address);
      const tokenless = new Supervisor({ address });
      await assert.rejects(tokenless.connection(), { message: `${address} needs a token` });
      assert.equal(tokenless.state.restartInMs, undefined, "another attempt would fail in the same way");
      await tokenless.stop();
    }
  }));

test("a peer that is no server is named at once", async () => {
  const peer = createServer((socket) => socket.on("error", () => {}).end("220 mail\r\n"));
  await once(peer.listen(0, "127.0.0.1"), "listening");
  for (const scheme of ["ws", "tcp", "grpc"]) {
    const address = `${scheme}://127.0.0.1:${peer.address().port}`;
    await assert.rejects(dial(address, { token: "x" }), new RegExp(`cannot connect to ${scheme}`), address);
  }
  peer.close();
});
