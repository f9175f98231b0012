// One session with servers of several releases, and a model that a test plays.
//
// Opt-in: CODEX_TEST_PEERS has the programs of other releases, separated by colons.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import test from "node:test";

import { Codex, approvals } from "../src/index.js";
import { PROGRAM, scripted } from "./server.js";

const PEERS = (process.env.CODEX_TEST_PEERS ?? "").split(":").filter(Boolean);
const isWanted = { skip: PEERS.length > 0 && PROGRAM ? false : "set CODEX_TEST_PEERS to programs of other releases" };
/** The tools that run commands, and the parameters of each. */
const TOOLS = [
  ["shell", { command: ["bash", "-lc", "touch made"] }],
  ["shell_command", { command: "touch made" }],
  ["exec_command", { cmd: "touch made" }],
];

const message = (text) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: [{ type: "output_text", text }],
});

/** The item that answers a request; undefined for an answer that never comes. */
function answerTo({ input, tools }) {
  const asked = input.findLastIndex(({ role }) => role === "user");
  const text = JSON.stringify(input[asked]);
  if (text.includes("Wait.")) return undefined;
  if (!text.includes("Run it.")) return message("Said.");
  if (input.slice(asked).some(({ type }) => type.endsWith("_output"))) return message("Ran.");
  const offered = new Set(tools.map(({ name }) => name));
  const [name, given] = TOOLS.find(([tool]) => offered.has(tool));
  return { type: "function_call", call_id: "call_1", name, arguments: JSON.stringify(given) };
}

async function answer(request, response) {
  let body = "";
  for await (const piece of request) body += piece;
  response.writeHead(200, { "content-type": "text/event-stream" });
  const tell = (type, members) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
  tell("response.created", { response: { id: "resp_1" } });
  const item = answerTo(JSON.parse(body));
  if (item === undefined) return;
  tell("response.output_item.done", { output_index: 0, item });
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  tell("response.completed", { response: { id: "resp_1", usage } });
  response.end();
}

/** What a program sees of a session: the kinds and ends of items and turns. */
async function session(options, workingDirectory) {
  const [asked, seen] = [[], []];
  const decide = ({ method }) => {
    asked.push(method);
    return approvals.allow();
  };
  const note = ({ items, finalResponse }) => seen.push([finalResponse, ...items.map(({ type }) => type)]);
  const codex = new Codex({ ...options, approvals: decide });
  const settings = { workingDirectory, approvalPolicy: "untrusted", sandboxMode: "workspace-write" };
  const thread = codex.startThread(settings);
  try {
    note(await thread.run("Say it."));
    note(await thread.run("Run it."));
    const controller = new AbortController();
    const { events } = await thread.runStreamed("Wait.", { signal: controller.signal });
    try {
      for await (const { type } of events) if (type === "turn.started") controller.abort(new Error("aborted"));
    } catch (error) {
      seen.push(error.message);
    }
  } finally {
    await codex.close();
  }
  const later = new Codex(options);
  try {
    note(await later.resumeThread(thread.id, settings).run("Say it again."));
  } finally {
    await later.close();
  }
  return { asked, seen };
}

test("a session is the same with every release", isWanted, async (context) => {
  const { folder } = scripted(context, []);
  const model = createServer(answer).listen(0, "127.0.0.1");
  context.after(() => {
    model.closeAllConnections();
    model.close();
  });
  await once(model, "listening");
  for (const [at, program] of [PROGRAM, ...PEERS].entries()) {
    const [home, work, tmp] = ["home", "work", "tmp"].map((name) => join(folder, `${name}${at}`));
    [home, work, tmp].forEach((path) => mkdirSync(path));
    const address = `http://127.0.0.1:${model.address().port}/v1`;
    const provider = `name = "played"\nbase_url = "${address}"\nwire_api = "responses"\n`;
    const head = `model = "played"\nmodel_provider = "played"\n[model_providers.played]\n`;
    writeFileSync(join(home, "config.toml"), `${head}${provider}request_max_retries = 0\nstream_max_retries = 0\n`);
    // 0.166 does not sandbox commands if its home is below the folder for temporary files.
    const env = { ...process.env, CODEX_HOME: home, TMPDIR: tmp };
    const { asked, seen } = await session({ codexPathOverride: program, env }, work);
    assert.deepEqual(asked, ["item/commandExecution/requestApproval"], program);
    const said = ["Said.", "agent_message"];
    const ran = ["Ran.", "command_execution", "agent_message"];
    assert.deepEqual(seen, [said, ran, "aborted", said], program);
    assert.ok(existsSync(join(work, "made")), program);
  }
});
