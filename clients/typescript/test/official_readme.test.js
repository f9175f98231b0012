// The code in the README of the official SDK `@openai/codex-sdk`, with only the import changed.
//
// Opt-in: CODEX_TEST_SDK_TS is the folder of the installed package. One block also needs `zod` and `zod-to-json-schema`
// next to it, which the README assumes.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";

import { Codex } from "../src/index.js";
import { PROGRAM, says, scripted } from "./server.js";

const SDK = process.env.CODEX_TEST_SDK_TS;
const isWanted = { skip: SDK && PROGRAM ? false : "set CODEX_TEST_SDK_TS to the folder of the official SDK" };
const OWN = new URL("../src/index.js", import.meta.url).href;
const ANSWER = JSON.stringify({ summary: "fine", status: "ok" });

/** The smallest picture. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A block as a program: types are left out, and later blocks continue the first one. */
function programOf(block) {
  const require = createRequire(join(SDK, "package.json"));
  const imports = [`import { Codex as Official } from ${JSON.stringify(OWN)};`];
  if (block.includes("zodToJsonSchema")) {
    for (const [name, from] of [["z", "zod"], ["zodToJsonSchema", "zod-to-json-schema"]]) {
      const { href } = pathToFileURL(require.resolve(from));
      imports.push(`import * as ${name}_all from ${JSON.stringify(href)};`);
      imports.push(`const ${name} = ${name}_all.${name} ?? ${name}_all.default.${name};`);
    }
  }
  const body = block
    .replace(/^import \{ Codex \} from "@openai\/codex-sdk";\n/m, "const Codex = Official;\n")
    .replaceAll(" as const;", ";")
    .replaceAll("!;", ";");
  const before = "const Codex = Official; const codex = new Codex(); const thread = codex.startThread();";
  return `${imports.join("\n")}\n${before}\n{\n${body}\n}\n`;
}

test("every block runs", isWanted, async (context) => {
  const blocks = [...readFileSync(join(SDK, "README.md"), "utf8").matchAll(/```typescript\n(.*?)```/gs)];
  assert.ok(blocks.length >= 10);
  const { folder, work, options } = scripted(context, [says(ANSWER, { repeat: true })]);
  symlinkSync(PROGRAM, join(folder, "codex"));
  const config = `model_provider = "scripted"\n[model_providers.scripted]\nscript = `;
  writeFileSync(join(folder, "home", "config.toml"), `${config}${JSON.stringify(join(folder, "answers.json"))}\n`);
  for (const name of ["ui.png", "diagram.jpg"]) writeFileSync(join(work, name), Buffer.from(PICTURE, "base64"));
  const codex = new Codex(options);
  const thread = codex.startThread();
  await thread.run("Something to resume.");
  await codex.close();
  const PATH = `${folder}${delimiter}${process.env.PATH}`;
  const env = { ...process.env, PATH, CODEX_HOME: join(folder, "home"), CODEX_THREAD_ID: thread.id };
  for (const [at, [, block]] of blocks.entries()) {
    const source = programOf(block);
    const args = ["--input-type=module", "-e", source];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: work, env, timeout: 30_000 });
    assert.equal(status, 0, `block ${at + 1}:\n${source}\n${stderr}`);
    if (block.includes("finalResponse")) assert.match(String(stdout), /fine/);
    if (block.includes("event.usage")) assert.match(String(stdout), /usage .*input_tokens/s);
  }
});
