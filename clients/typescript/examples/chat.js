// A chat in the terminal: node chat.js [THREAD]
//
// Ends with the end of the input. Ctrl-C interrupts the turn, or ends the chat between turns.

import { createInterface } from "node:readline";

import { Codex, approvals } from "codex-embed";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Text without control characters: the model and the commands that it runs are not trusted with the terminal. */
const plain = (text) => String(text).replace(/[\p{Cc}\p{Cf}]/gu, (letter) => ("\n\t".includes(letter) ? letter : ""));

/** The next line of the input; undefined at its end. */
async function read(prompt) {
  process.stdout.write(prompt);
  return (await lines.next()).value;
}

/** Asks the person. The connection goes on meanwhile. */
async function decide({ method, params }) {
  const subject = params?.command ?? params?.reason ?? method;
  const answer = (await read(`\nallow ${plain(subject)}? [y/N] `)) ?? "";
  return answer.trim().toLowerCase() === "y" ? approvals.allow() : approvals.deny("the user said no");
}

function show(event) {
  if (event.type === "item.started" && event.item.type === "command_execution") {
    console.log(`\n$ ${plain(event.item.command)}`);
  } else if (event.type === "turn.failed") {
    console.log(`\n! ${plain(event.error.message)}`);
  } else if (event.type === "turn.completed") {
    console.log();
  }
}

async function run(thread, prompt) {
  const controller = new AbortController();
  const interrupt = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt);
  try {
    const { events } = await thread.runStreamed(prompt, { signal: controller.signal });
    for await (const event of events) show(event);
  } catch (error) {
    console.log(`\n! ${plain(error.message)}`);
  } finally {
    process.off("SIGINT", interrupt);
  }
}

const codex = new Codex({ approvals: decide });
codex.subscribe((event) => {
  if (event.type === "delta" && event.part === "message") process.stdout.write(plain(event.text));
});
const [id] = process.argv.slice(2);
const thread = id === undefined ? codex.startThread() : codex.resumeThread(id);
for (let prompt; (prompt = await read("> ")) !== undefined; ) {
  if (prompt.trim() !== "") await run(thread, prompt);
}
console.log(`\nthread ${thread.id}`);
await codex.close();
