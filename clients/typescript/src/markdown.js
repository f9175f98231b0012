// A thread as readable text, with the headings of `codex threads export`. A text cannot end the block that it is shown in.

import { get, jsonText } from "./shapes.js";
import { statusOf } from "./timeline.js";

/** The most bytes that are shown of an output. */
export const OUTPUT_BYTES = 8 << 10;

const textOf = (value, name) => (typeof get(value, name) === "string" ? value[name] : "");
const listOf = (value) => (Array.isArray(value) ? value : []);

/** A whole thread. */
export const markdown = (thread) => title(thread.members) + thread.turns.map(turnText).join("");

/** The title of a thread, and the facts about it. */
function title(members) {
  const began = Number.isInteger(members.createdAt) ? `- began: ${time(members.createdAt)}\n` : "";
  const facts = [
    ["folder", members.cwd],
    ["branch", get(members.gitInfo, "branch")],
    ["provider", members.modelProvider],
    ["release", members.cliVersion],
  ]
    .filter(([, value]) => typeof value === "string" && value !== "")
    .map(([name, value]) => `- ${name}: ${code(value)}\n`);
  return `# Thread ${textOf(members, "id")}\n\n${began}${facts.join("")}\n`;
}

/** A turn: its items, and its end unless it is complete. */
function turnText({ items, status, error }) {
  const text = items.map(itemText).join("");
  if (status === "interrupted") return `${text}*The turn was interrupted.*\n\n`;
  if (status !== "failed") return text;
  const [why = ""] = linesOf(textOf(error, "message"));
  return `${text}*The turn failed${why && `: ${why}`}*\n\n`;
}

const KINDS = {
  userMessage: ({ members }) => section("User", input(members.content)),
  agentMessage: ({ members }) => section("Assistant", textOf(members, "text")),
  plan: ({ members }) => section("Plan", textOf(members, "text")),
  exitedReviewMode: ({ members }) => section("Review", textOf(members, "review")),
  enteredReviewMode: ({ members }) => `*A review begins: ${textOf(members, "review")}*\n\n`,
  reasoning: ({ members }) => quoted(strings(members.summary)) || quoted(strings(members.content)),
  commandExecution: (item) =>
    `**Command**${outcome(item)}\n\n` +
    fenced(textOf(item.members, "command")) +
    cut(textOf(item.members, "aggregatedOutput")),
  fileChange: changes,
  mcpToolCall: (item) => call(`${textOf(item.members, "server")}.${textOf(item.members, "tool")}`, item),
  dynamicToolCall: (item) => call(textOf(item.members, "tool"), item),
  collabAgentToolCall: (item) => call(textOf(item.members, "tool"), item),
  webSearch: ({ members }) => `**Web search** ${code(textOf(members, "query"))}\n\n`,
  imageView: ({ members }) => `**Image** ${code(textOf(members, "path"))}\n\n`,
  contextCompaction: () => "---\n\n*The conversation above was compacted for the model.*\n\n",
};

const itemText = (item) => (Object.hasOwn(KINDS, item.kind) ? KINDS[item.kind](item) : `**${item.kind}**\n\n`);

function linesOf(text) {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const section = (heading, text) => (text.trim() === "" ? "" : `## ${heading}\n\n${text.trim()}\n\n`);

/** The texts of a message; pictures and others by their names. */
function input(content) {
  const parts = listOf(content).map((part) => {
    switch (get(part, "type")) {
      case "text":
        return textOf(part, "text");
      case "image":
        return "*image*";
      case "localImage":
        return `*image* ${code(textOf(part, "path"))}`;
      default: {
        const name = textOf(part, "name") || textOf(part, "path");
        return name === "" ? undefined : code(name);
      }
    }
  });
  return parts.filter((part) => part !== undefined).join("\n");
}

const strings = (parts) => listOf(parts).filter((part) => typeof part === "string").join("\n\n");

function quoted(text) {
  const lines = linesOf(text.trim()).map((line) => `> ${line}\n`);
  return lines.length > 0 ? `${lines.join("")}\n` : "";
}

/** The end of a call that was not simply completed. */
function outcome(item) {
  const { exitCode } = item.members;
  if (Number.isInteger(exitCode) && exitCode !== 0) return ` (exit code ${exitCode})`;
  const status = statusOf(item);
  return status === "completed" || status === "inProgress" ? "" : ` (${status})`;
}

function changes(item) {
  const shown = listOf(item.members.changes).map((change) => {
    const kind = get(change, "kind");
    const [word, moved] = [textOf(kind, "type"), textOf(kind, "move_path")];
    const diff = cut(textOf(change, "diff"), word === "update" ? "diff" : "");
    return `${word} ${code(textOf(change, "path"))}${moved && ` to ${code(moved)}`}\n\n${diff}`;
  });
  return `**Changes**${outcome(item)}\n\n${shown.join("")}`;
}

function call(name, item) {
  const { members } = item;
  const given = members.arguments ?? members.prompt ?? "";
  const parts = listOf(members.contentItems ?? get(members.result, "content"));
  const texts = parts.map((part) => get(part, "text")).filter((text) => typeof text === "string");
  const error = get(members.error, "message");
  const result = typeof error === "string" ? error : texts.join("\n");
  const shown = typeof given === "string" ? given : jsonText(given);
  return `**Call of ${code(name)}**${outcome(item)}\n\n${cut(shown)}${cut(result)}`;
}

/** The beginning of a text between fences; nothing if it is empty. */
function cut(text, language = "") {
  if (text.trim() === "") return "";
  const bytes = new TextEncoder().encode(text);
  // A stream leaves out a character that is not complete.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const shown = decoder.decode(bytes.subarray(0, OUTPUT_BYTES), { stream: true });
  const rest = bytes.length - new TextEncoder().encode(shown).length;
  return fenced(shown, language) + (rest > 0 ? `*${rest} more bytes*\n\n` : "");
}

/** Text between fences that nothing in it can close. */
function fenced(text, language = "") {
  const fence = "`".repeat(Math.max(longestRun(text), 2) + 1);
  return `${fence}${language}\n${text.trimEnd()}\n${fence}\n\n`;
}

/** Inline code. */
function code(text) {
  const mark = "`".repeat(longestRun(text) + 1);
  const line = text.replaceAll("\n", " ");
  return line.includes("`") ? `${mark} ${line} ${mark}` : `${mark}${line}${mark}`;
}

/** The longest run of backticks in a text. */
function longestRun(text) {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

function time(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString().replace(".000Z", "Z");
}
