// A client for kills.test.js, which kills it: runs a turn and tells the id of its thread.

import { Codex } from "../src/index.js";

async function run({ options, name }) {
  const codex = new Codex(options);
  const client = await codex.client();
  const { thread } = await client.call("thread/start", { sandbox: "read-only" });
  console.log(thread.id);
  const input = [{ type: "text", text: "Begin." }];
  // It stays until it is killed.
  setInterval(() => {}, 1000);
  await client.call("turn/start", { threadId: thread.id, input, clientUserMessageId: name });
}

// The runner of the tests starts every file in this folder.
if (process.argv[2] !== undefined) await run(JSON.parse(process.argv[2]));
