// Threads for people: timeline, Markdown, diffs, usage.

import assert from "node:assert/strict";
import test from "node:test";

import { MOST_LINES, ofItem, ofQuestion, ofText } from "../src/diff.js";
import { Teller } from "../src/events.js";
import { OUTPUT_BYTES, markdown } from "../src/markdown.js";
import { response } from "../src/router.js";
import { State } from "../src/state.js";
import { find, timeline } from "../src/timeline.js";
import { costOf, limitsOf, usageOf, waitOf } from "../src/usage.js";

const change = (path, kind, diff) => ({ path, kind, diff });
const ITEMS = [
  ["1", { type: "userMessage", id: "a", content: [{ type: "text", text: "Baue das ÄRGERNIS" }] }],
  ["1", { type: "commandExecution", id: "b", command: "make", status: "failed", aggregatedOutput: "no rule" }],
  ["2", { type: "fileChange", id: "c", status: "completed", changes: [change("src/lib.rs", { type: "add" }, "fn main")] }],
  ["2", { type: "agentMessage", id: "d", text: "Made it." }],
];

function threadOf(items, type = "itemCompleted") {
  const state = new State();
  items.forEach(([turn, item], at) =>
    state.apply({ type, thread: "t", turn, item, teller: Teller.ITEMS, atMs: at * 10 }),
  );
  return state.threads.get("t");
}

test("a filter wants what it names", () => {
  const thread = threadOf(ITEMS);
  for (const [filter, expected] of [
    [{}, "abcd"],
    [{ kinds: ["fileChange", "agentMessage"] }, "cd"],
    [{ turn: "1" }, "ab"],
    [{ statuses: ["failed"] }, "b"],
    [{ sinceMs: 10, untilMs: 30 }, "bc"],
    [{ text: "LIB.rs" }, "c"],
    [{ text: "update" }, ""],
    [{ text: "make", turn: "2" }, ""],
  ]) {
    assert.equal([...timeline(thread, filter)].map(({ item }) => item.id).join(""), expected, JSON.stringify(filter));
  }
});

test("a match is shown where it is", () => {
  const [{ found }] = timeline(threadOf(ITEMS), { text: "ärger" });
  assert.equal(found.text.slice(found.start, found.end), "ÄRGER");
  assert.deepEqual(find("aİx", "i\u0307x"), { text: "aİx", start: 1, end: 3 }, "a letter may have a longer lower case");
  assert.equal(find("ab", "abc"), undefined);
});

function shown(turns) {
  const facts = { id: "t", createdAt: 1_763_330_400, cwd: "/w", modelProvider: "p`q", cliVersion: "1.0" };
  const state = new State();
  state.apply(response({ thread: { ...facts, gitInfo: { branch: "main" }, turns } }));
  return markdown(state.threads.get("t"));
}

test("every kind of item is shown", () => {
  const content = [{ type: "text", text: "Do it" }, { type: "localImage", path: "p.png" }];
  const command = { command: "make", status: "failed", exitCode: 2, aggregatedOutput: "```\nno\n" };
  const changes = [change("x", { type: "update", move_path: null }, "@@ -1 +1 @@\n-a\n+b\n")];
  const result = { content: [{ type: "text", text: "found" }] };
  const items = [
    { type: "userMessage", id: "a", content },
    { type: "reasoning", id: "b", summary: ["one", "two"], content: [] },
    { type: "commandExecution", id: "c", ...command },
    { type: "fileChange", id: "d", status: "declined", changes },
    { type: "mcpToolCall", id: "e", server: "s", tool: "t", status: "completed", arguments: { k: 1 }, result },
    { type: "webSearch", id: "f", query: "q" },
    { type: "contextCompaction", id: "g" },
    { type: "fromTheFuture", id: "h" },
    { type: "agentMessage", id: "i", text: " Done. \n" },
  ];
  const text = shown([
    { id: "1", status: "completed", items },
    { id: "2", status: "failed", error: { message: "no answer\nhint" }, items: [] },
    { id: "3", status: "interrupted", items: [] },
  ]);
  assert.equal(
    text,
    "# Thread t\n\n- began: 2025-11-16T22:00:00Z\n- folder: `/w`\n- branch: `main`\n" +
      "- provider: `` p`q ``\n- release: `1.0`\n\n" +
      "## User\n\nDo it\n*image* `p.png`\n\n> one\n> \n> two\n\n" +
      "**Command** (exit code 2)\n\n```\nmake\n```\n\n````\n```\nno\n````\n\n" +
      "**Changes** (declined)\n\nupdate `x`\n\n```diff\n@@ -1 +1 @@\n-a\n+b\n```\n\n" +
      '**Call of `s.t`**\n\n```\n{"k":1}\n```\n\n```\nfound\n```\n\n' +
      "**Web search** `q`\n\n---\n\n*The conversation above was compacted for the model.*\n\n**fromTheFuture**\n\n" +
      "## Assistant\n\nDone.\n\n*The turn failed: no answer*\n\n*The turn was interrupted.*\n\n",
  );
});

test("a long output is cut between characters", () => {
  const item = { type: "commandExecution", id: "c", command: "x", aggregatedOutput: `x${"ä".repeat(OUTPUT_BYTES)}` };
  const text = shown([{ id: "1", status: "completed", items: [item] }]);
  assert.ok(text.endsWith(`*${OUTPUT_BYTES + 2} more bytes*\n\n`), text.slice(-60));
});

/** A diff as text, with changed words in brackets. */
const drawn = (files) =>
  files.flatMap(({ kind, path, movedTo, added, removed, hunks }) => [
    `${kind} ${path}${movedTo ? ` -> ${movedTo}` : ""} +${added} -${removed}`,
    ...hunks.flatMap(({ heading, lines }) => [
      `@ ${heading}`,
      ...lines.map((line) => {
        const mark = (text, [start, end]) => `${text.slice(0, start)}[${text.slice(start, end)}]${text.slice(end)}`;
        return `${line.old ?? "-"} ${line.new ?? "-"} ${line.side} ${[...line.changed].reverse().reduce(mark, line.text)}`;
      }),
    ]),
  ]);

test("a patch shows numbers and changed words", () => {
  const update = "@@ -3,3 +3,3 @@ fn a()\n let x = 1;\n-    call(one, two);\n+    call(one, three);\n }\n";
  const changes = [
    change("a.rs", { type: "update", move_path: "b.rs" }, update),
    change("new.txt", { type: "add" }, "first\nsecond\n"),
    change("old.txt", { type: "delete" }, "gone\n"),
  ];
  assert.deepEqual(drawn(ofItem({ changes })), [
    "update a.rs -> b.rs +1 -1",
    "@ fn a()",
    "3 3 both let x = 1;",
    "4 - old     call(one, [two]);",
    "- 4 new     call(one, [three]);",
    "5 5 both }",
    "add new.txt +2 -0",
    "@ ",
    "- 1 new first",
    "- 2 new second",
    "delete old.txt +0 -1",
    "@ ",
    "1 - old gone",
  ]);
  const odd = change("a", { type: "update" }, "@@ -1 +1 @@\n-the quick brown fox\n+nothing of that is left\n");
  assert.ok(ofItem({ changes: [odd] })[0].hunks[0].lines.every((line) => line.changed.length === 0));
});

test("a diff of several files is cut at them", () => {
  const files = ofText(
    "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" +
      "diff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+y\n" +
      "diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n",
  );
  const kinds = files.map(({ kind, path, movedTo }) => [kind, path, movedTo]);
  assert.deepEqual(kinds, [["update", "x", null], ["add", "y", null], ["update", "p", "q"]]);
});

test("a question shows the changes that it is about", () => {
  const changes = [change("n", { type: "add" }, "one\n")];
  const thread = threadOf([["u", { type: "fileChange", id: "c", status: "inProgress", changes }]], "itemStarted");
  for (const params of [{ threadId: "t", itemId: "c" }, { fileChanges: { n: { add: { content: "one\n" } } } }]) {
    assert.deepEqual(drawn(ofQuestion({ params }, thread)), ["add n +1 -0", "@ ", "- 1 new one"]);
  }
  assert.deepEqual(ofQuestion({ params: {} }, thread), []);
});

test("odd and large diffs are bounded", () => {
  const wide = `${"a b ".repeat(90)}\n`;
  const many = `@@ -1 +1 @@\n${`-${wide}`.repeat(5000)}${`+${wide}`.repeat(5000)}`;
  const [long, odd, marked] = ofItem({
    changes: [
      change("long", { type: "update" }, `@@ -1 +1 @@\n${"+x\n".repeat(MOST_LINES + 5)}`),
      change("odd", 7, "no diff\nat all"),
      { kind: { type: "add" } },
      "text",
      change("many", { type: "update" }, many),
    ],
  });
  assert.deepEqual([long.isCut, long.added, long.hunks[0].lines.length], [true, MOST_LINES + 5, MOST_LINES]);
  assert.deepEqual(odd.hunks, []);
  assert.deepEqual([marked.added, marked.removed], [5000, 5000]);
});

test("usage is read in both spellings, and costs", () => {
  const total = { totalTokens: 1100, inputTokens: 1000, cachedInputTokens: 400, outputTokens: 100 };
  const usage = usageOf({ total, last: { total_tokens: 250 }, modelContextWindow: 1000, threadCost: 0.5 });
  assert.deepEqual([usage.total.input, usage.total.cached, usage.windowLeft], [1000, 400, 0.75]);
  assert.deepEqual([usage.threadCost, usage.turnCost], [0.5, null]);
  const cost = costOf(usage.total, { input: 10, cached: 1, cacheWrite: 12, output: 100 });
  assert.ok(Math.abs(cost - 0.0164) < 1e-9, String(cost));
  assert.equal(usageOf(null), null);
});

test("a reset is a time in every release", () => {
  const newer = { primary: { usedPercent: 100, windowDurationMins: 300, resetsAt: 1060 }, planType: "pro" };
  const older = { primary: { used_percent: 100, window_minutes: 300, resets_in_seconds: 60 } };
  for (const told of [newer, older]) {
    const limits = limitsOf(told, 1000);
    assert.deepEqual([limits.primary.resetsAt, limits.primary.lengthSeconds], [1060, 18_000]);
    assert.deepEqual([waitOf(limits, 1000), waitOf(limits, 2000)], [60, 0]);
  }
  assert.equal(waitOf(limitsOf({ primary: { usedPercent: 50, resetsAt: 1060 } }, 1000), 1000), null);
  assert.deepEqual(limitsOf("odd", 0), { primary: null, secondary: null, plan: null, credits: null });
});
