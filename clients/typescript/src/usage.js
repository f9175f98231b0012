// Tokens, their cost, and the limits of an account with the times at which they are restored.

import { get, isObject } from "./shapes.js";

/** The first of some members that is there. */
const member = (value, ...names) =>
  names.map((name) => get(value, name)).find((found) => found !== undefined && found !== null);
const count = (value, ...names) => {
  const found = member(value, ...names);
  return Number.isInteger(found) && found >= 0 ? found : null;
};
const number = (value, ...names) => {
  const found = member(value, ...names);
  return typeof found === "number" ? found : null;
};

const tokensOf = (counts) => ({
  total: count(counts, "totalTokens", "total_tokens") ?? 0,
  input: count(counts, "inputTokens", "input_tokens") ?? 0,
  cached: count(counts, "cachedInputTokens", "cached_input_tokens") ?? 0,
  cacheWrite: count(counts, "cacheWriteInputTokens", "cache_write_input_tokens") ?? 0,
  output: count(counts, "outputTokens", "output_tokens") ?? 0,
  reasoning: count(counts, "reasoningOutputTokens", "reasoning_output_tokens") ?? 0,
});

/** Reads the usage of a thread's state; null before the first answer. */
export function usageOf(usage) {
  if (!isObject(usage)) return null;
  const [last, window] = [tokensOf(usage.last), count(usage, "modelContextWindow", "model_context_window")];
  return {
    total: tokensOf(usage.total),
    last,
    window,
    windowLeft: window ? Math.min(Math.max(1 - last.total / window, 0), 1) : null,
    turnCost: number(usage, "turnCost", "turn_cost"),
    threadCost: number(usage, "threadCost", "thread_cost"),
  };
}

/** The cost of tokens, with prices for a million of them: `{input, cached, cacheWrite, output}`. */
export function costOf(tokens, prices) {
  const fresh = Math.max(tokens.input - tokens.cached - tokens.cacheWrite, 0);
  const cost =
    fresh * prices.input +
    tokens.cached * prices.cached +
    tokens.cacheWrite * prices.cacheWrite +
    tokens.output * prices.output;
  return cost / 1_000_000;
}

function windowOf(window, now) {
  const usedPercent = number(window, "usedPercent", "used_percent");
  if (usedPercent === null) return null;
  const minutes = count(window, "windowDurationMins", "window_minutes");
  // The first releases reported the seconds that were left.
  const left = count(window, "resetsInSeconds", "resets_in_seconds");
  const resetsAt = count(window, "resetsAt", "resets_at") ?? (left === null ? null : now + left);
  return { usedPercent, lengthSeconds: minutes === null ? null : minutes * 60, resetsAt };
}

const textOr = (value) => (typeof value === "string" ? value : null);

/** Reads limits that arrived at this second of Unix time, in the shape of any release. */
export const limitsOf = (limits, now) => ({
  primary: windowOf(get(limits, "primary"), now),
  secondary: windowOf(get(limits, "secondary"), now),
  plan: textOr(member(limits, "planType", "plan_type")),
  credits: textOr(get(get(limits, "credits"), "balance")),
});

/** The seconds until all exhausted windows are restored; null if none is exhausted. */
export function waitOf({ primary, secondary }, now) {
  const exhausted = [primary, secondary].filter((window) => window?.usedPercent >= 100 && window.resetsAt !== null);
  return exhausted.length === 0 ? null : Math.max(...exhausted.map(({ resetsAt }) => Math.max(resetsAt - now, 0)));
}
