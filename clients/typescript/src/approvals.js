// Answers to the questions of a server. Each question gets exactly one answer; a handler that throws or is too late has
// denied it, and so is an approval that cannot be read.

import { threadId } from "./shapes.js";

/** How long a handler may take, in milliseconds, unless it is told otherwise. */
export const DEADLINE_MS = 10 * 60_000;
const NO_METHOD = -32601;

const SECOND = new Set(["item/commandExecution/requestApproval", "item/fileChange/requestApproval"]);
const FIRST = new Set(["execCommandApproval", "applyPatchApproval"]);
const PERMISSIONS = "item/permissions/requestApproval";
/** The longest wait of a timer; a longer one would end at once. */
export const LONGEST_MS = 2 ** 31 - 1;

/** Yes, this once. */
export const allow = () => ({ kind: "allow" });
/** Yes, and the same is not asked again in this session. */
export const allowForSession = () => ({ kind: "allowForSession" });
/** Yes, and commands that begin with these words are not asked about again. Without a word it is a denial. */
export const allowWithAmendment = (words) => ({ kind: "allowWithAmendment", words });
/** No; the model is told and goes on. */
export const deny = (reason = "") => ({ kind: "deny", reason });
/** No, and the turn ends. */
export const cancel = () => ({ kind: "cancel" });
/** The result of a question that is no approval, as its method defines it. */
export const result = (value) => ({ kind: "result", value });

/** The result of a tool that the program supplies (`item/tool/call`), as text. */
export const toolResult = (text, success = true) =>
  result({ contentItems: [{ type: "inputText", text }], success });
/** Everything that a question asks for (`item/permissions/requestApproval`), for the turn or for the session. */
export const grant = (question, forSession = false) =>
  result({ permissions: question?.params?.permissions ?? {}, scope: forSession ? "session" : "turn" });

/** A policy that denies everything. */
export const denyAll = () => deny("the policy of this program is to deny");
/** A policy that allows every command and every change of files, and denies questions that are no approvals. */
export const allowAll = ({ method }) => (SECOND.has(method) || FIRST.has(method) ? allow() : deny("no approval"));

/** Whether an amendment names at least one word; every command begins with none. */
const isWords = (words) =>
  Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string");

/** Whether an approval says which thread it is for. */
const isReadable = ({ method, params }) =>
  !(SECOND.has(method) || FIRST.has(method) || method === PERMISSIONS) || threadId(params) !== "";

/**
 * A decision in the words of the question's dialect: `{result}` or `{error}`.
 * @param {string} method
 * @param {{kind: string, words?: string[], value?: unknown}} decision
 */
export function encode(method, decision) {
  if (decision?.kind === "result") return { result: decision.value ?? null };
  const isWhole = decision?.kind !== "allowWithAmendment" || isWords(decision.words);
  const kind = isWhole ? decision?.kind : "deny";
  const pick = (words, no) => ({ result: { decision: Object.hasOwn(words, kind) ? words[kind] : no } });
  if (SECOND.has(method)) {
    const amended = { acceptWithExecpolicyAmendment: { execpolicy_amendment: decision?.words } };
    const words = { allow: "accept", allowForSession: "acceptForSession", allowWithAmendment: amended, cancel: "cancel" };
    return pick(words, "decline");
  }
  if (FIRST.has(method)) {
    const amended = { approved_execpolicy_amendment: { proposed_execpolicy_amendment: decision?.words } };
    const words = { allow: "approved", allowForSession: "approved_for_session", allowWithAmendment: amended, cancel: "abort" };
    return pick(words, "denied");
  }
  if (method === "mcpServer/elicitation/request") {
    if (kind === "allow" || kind === "allowWithAmendment") return { result: { action: "accept", content: {} } };
    if (kind === "allowForSession") {
      return { result: { action: "accept", content: {}, _meta: { persist: "session" } } };
    }
    return { result: { action: kind === "cancel" ? "cancel" : "decline", content: null } };
  }
  // Nothing is granted unless a handler says what.
  if (method === PERMISSIONS) return { result: { permissions: {}, scope: "turn" } };
  return { error: { code: NO_METHOD, message: `this client does not answer ${method}` } };
}

/**
 * The answer to a question, and a note if it cannot be read or the handler has failed. Once the connection is gone,
 * nobody waits for a decision any more.
 * @returns {Promise<{answer: {result?: unknown, error?: object}, note?: string}>}
 */
export async function answer(question, handler = denyAll, deadlineMs = DEADLINE_MS, gone = undefined) {
  if (!isReadable(question)) {
    return { answer: encode(question.method, deny()), note: `${question.method}: the question cannot be read` };
  }
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, Math.min(deadlineMs, LONGEST_MS), { note: `no decision within ${deadlineMs} ms` });
  });
  const decided = Promise.resolve()
    .then(() => handler(question))
    .then((decision) => ({ decision }))
    .catch((error) => ({ note: `the handler has failed: ${error?.message ?? error}` }));
  const { decision, note } = await Promise.race([decided, late, ...(gone ? [gone.then(() => ({}))] : [])]);
  clearTimeout(timer);
  return { answer: encode(question.method, decision ?? deny(note)), note: note && `${question.method}: ${note}` };
}
