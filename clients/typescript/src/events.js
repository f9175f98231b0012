// The parts of events that the router and the state share.

/** The dialects that tell items, from the one that says least to the one that says most. */
export const Teller = Object.freeze({ OLD_QUEUE: 0, QUEUE: 1, CREATED: 2, ITEMS: 3 });

/** The kind of the items that have a part that grows. */
export const KIND_OF_PART = Object.freeze({
  message: "agentMessage",
  output: "commandExecution",
  summary: "reasoning",
  reasoning: "reasoning",
  plan: "plan",
});
