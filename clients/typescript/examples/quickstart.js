// Asks about a folder and prints the answer: node quickstart.js [FOLDER]

import { Codex } from "codex-embed";

const codex = new Codex();
const thread = codex.startThread({ workingDirectory: process.argv[2] ?? ".", sandboxMode: "read-only" });

const turn = await thread.run("Explain this folder in three bullets.");
console.log(turn.finalResponse);
console.error(`${turn.items.length} items, thread ${thread.id}`);
await codex.close();
