// Threads, turns and items as events leave them: the state that `thread/read` would show. It depends on the events
// alone, not on when they came or how their bytes were cut.

import { KIND_OF_PART, Teller } from "./events.js";
import { compareBytes } from "./queue.js";
import { get, isObject } from "./shapes.js";

const MOST_NOTED = 100;
const MOST_PARTS = 10_000;
/** The questions of a thread that are kept; the oldest give way. */
const MOST_QUESTIONS = 1000;
/** The last items of a turn among which one without a name is looked for. */
const LOOK_BACK = 256;
const UNNAMED_KINDS = ["agentMessage", "reasoning", "userMessage"];

const textOf = (value, name) => (typeof get(value, name) === "string" ? value[name] : "");
const copied = (members) => ({ ...members });

const placesOf = (list) => new Map(list.map(({ id }, at) => [id, at]));

/** An item, with the dialect that told it best so far and the one that tells its deltas. */
class Item {
  constructor(id, members, isComplete, teller) {
    Object.assign(this, { id, members, isComplete, teller, deltas: undefined, beganMs: undefined });
  }

  /** Lists that were made here, so that they may grow in place. */
  #own = new Map();

  get kind() {
    return textOf(this.members, "type");
  }

  append(part, index, text) {
    // An item of another kind than its delta thinks has its text where its kind has it.
    if (part === "message" && this.kind === "reasoning") [part, index] = ["summary", 0];
    if (part === "message" || part === "plan") this.#grow("text", text);
    else if (part === "output") this.#grow("aggregatedOutput", text);
    else this.#growAt(part === "summary" ? "summary" : "content", index, text);
  }

  #grow(name, text) {
    this.members[name] = textOf(this.members, name) + text;
  }

  #growAt(name, index, text) {
    const known = this.members[name];
    const parts = known !== undefined && known === this.#own.get(name) ? known : Array.isArray(known) ? [...known] : [];
    this.#own.set(name, parts);
    if (index < MOST_PARTS) {
      while (parts.length <= index) parts.push("");
      parts[index] = (typeof parts[index] === "string" ? parts[index] : "") + text;
    }
    this.members[name] = parts;
  }
}

/** A turn. */
class Turn {
  /** The last place of each id. */
  #places;

  constructor(id, status = "inProgress", error = null, items = []) {
    Object.assign(this, { id, status, error, items });
    this.#places = placesOf(items);
  }

  #lastOpen(teller, fits = () => true) {
    for (let at = this.items.length - 1; at >= 0 && at >= this.items.length - LOOK_BACK; at -= 1) {
      const item = this.items[at];
      if (!item.isComplete && item.teller === teller && fits(item)) return at;
    }
    return -1;
  }

  #open(kind, teller) {
    return this.#lastOpen(teller, (item) => item.kind === kind);
  }

  #position(id) {
    return this.#places.get(id) ?? -1;
  }

  #add(item) {
    this.#places.set(item.id, this.items.length);
    this.items.push(item);
  }

  /** Drops the items of a kind that only the old queue has told. */
  forget(kind) {
    this.items = this.items.filter((item) => item.teller !== Teller.OLD_QUEUE || item.kind !== kind);
    this.#places = placesOf(this.items);
  }

  #newId(kind, id) {
    return id === "" ? `${kind}-${this.items.length + 1}` : id;
  }

  tell(id, members, teller, isComplete, atMs) {
    this.#tell(id, members, teller, isComplete);
    const at = atMs === undefined ? -1 : this.#position(id);
    if (at >= 0) this.items[at].beganMs ??= atMs;
  }

  #tell(id, members, teller, isComplete) {
    const kind = textOf(members, "type");
    const at = id === "" ? this.#open(kind, teller) : this.#position(id);
    if (at < 0) {
      const name = this.#newId(kind, id);
      this.#add(new Item(name, { ...members, id: name }, isComplete, teller));
      return;
    }
    const item = this.items[at];
    if (teller < item.teller) return;
    if (teller > item.teller || teller === Teller.ITEMS) {
      if (isComplete || item.deltas === undefined) item.members = copied(members);
    } else {
      item.members = { ...item.members, ...members, id: item.members.id };
    }
    item.teller = teller;
    item.isComplete ||= isComplete;
  }

  grow({ item: id, part, index, text, teller }) {
    const kind = KIND_OF_PART[part];
    let at = id === "" ? this.#open(kind, teller) : this.#position(id);
    if (at < 0 && id === "") at = this.#lastOpen(teller);
    if (at < 0) {
      const name = this.#newId(kind, id);
      this.#add(new Item(name, { type: kind, id: name }, false, teller));
      at = this.items.length - 1;
    }
    const item = this.items[at];
    if (item.isComplete) return;
    item.deltas ??= teller;
    if (item.deltas === teller) item.append(part, index, text);
  }

  toValue() {
    const items = this.items.map((item) => ({ complete: item.isComplete, item: item.members }));
    return { id: this.id, status: this.status, error: this.error, items };
  }
}

/** A thread. */
class Thread {
  members = {};
  turns = [];
  plan = null;
  diff = "";
  usage = null;
  errors = [];
  questions = [];
  #named = new Set();
  /** The last place of each turn's id. */
  #places = new Map();

  get runningTurn() {
    const last = this.turns.at(-1);
    return last?.status === "inProgress" ? last : undefined;
  }

  open(value, isWhole) {
    const { turns, ...members } = value;
    // Not by assignment: a member may have the name `__proto__`.
    this.members = { ...this.members, ...members };
    if (!isWhole) return;
    this.turns = (Array.isArray(turns) ? turns : []).map(storedTurn);
    this.#places = placesOf(this.turns);
  }

  startTurn(id) {
    const known = this.#places.get(id);
    if (known !== undefined) return this.turns[known];
    const turn = new Turn(id);
    this.#places.set(id, this.turns.length);
    this.turns.push(turn);
    return turn;
  }

  /** The turn of a name; the last one if it has none. */
  turn(id) {
    return (id === "" ? this.turns.at(-1) : undefined) ?? this.startTurn(id);
  }

  /** The end that was told first holds: a turn that was interrupted is told to be complete as well. */
  endTurn(id, status, error) {
    const turn = this.turn(id);
    if (turn.status === "inProgress" || (status === "failed" && turn.status === "completed")) turn.status = status;
    if (error !== null) turn.error = error;
  }

  takeUsage(usage) {
    // The queue tells less than the second dialect, which tells the same again.
    const total = (value) => get(get(value, "total"), "totalTokens");
    const knowsMore = get(get(this.usage, "total"), "cacheWriteInputTokens") !== undefined;
    if (!(knowsMore && total(this.usage) === total(usage))) this.usage = usage;
  }

  noteError(message) {
    if (this.errors.length < MOST_NOTED && this.errors.at(-1) !== message) this.errors.push(message);
  }

  tell(turnId, members, teller, isComplete, atMs) {
    const kind = textOf(members, "type");
    if (teller === Teller.OLD_QUEUE) {
      if (this.#named.has(kind)) return;
    } else if (UNNAMED_KINDS.includes(kind) && !this.#named.has(kind)) {
      this.#named.add(kind);
      this.turn(turnId).forget(kind);
    }
    this.turn(turnId).tell(textOf(members, "id"), members, teller, isComplete, atMs);
  }

  grow(delta) {
    if (delta.teller === Teller.OLD_QUEUE && this.#named.has(KIND_OF_PART[delta.part])) return;
    this.turn(delta.turn).grow(delta);
  }

  toValue() {
    const { members, plan, diff, usage, errors } = this;
    const questions = this.questions.map(({ id, method }) => ({ id, method }));
    return { members, turns: this.turns.map((turn) => turn.toValue()), plan, diff, usage, errors, questions };
  }
}

function storedItem(members) {
  const isComplete = members.status !== "inProgress";
  const item = new Item(textOf(members, "id"), copied(members), isComplete, Teller.ITEMS);
  if (Number.isInteger(members.startedAtMs)) item.beganMs = members.startedAtMs;
  return item;
}

/** The status of a stored turn. One that began and has no end was interrupted by the end of its server. */
export function endOf(turn) {
  const status = textOf(turn, "status");
  const isCut = status === "completed" && Number.isInteger(get(turn, "startedAt")) && get(turn, "completedAt") === null;
  return isCut ? "interrupted" : status;
}

function storedTurn(turn) {
  const told = get(turn, "items");
  const items = (Array.isArray(told) ? told : []).filter(isObject).map(storedItem);
  return new Turn(textOf(turn, "id"), endOf(turn), get(turn, "error") ?? null, items);
}

/** Everything that is known. */
export class State {
  threads = new Map();
  rateLimits = null;
  /** The methods that were not known, each once. */
  unknown = [];
  notes = 0;

  #at(id) {
    let thread = this.threads.get(id);
    if (thread === undefined) this.threads.set(id, (thread = new Thread()));
    return thread;
  }

  /** Takes an event. */
  apply(event) {
    switch (event.type) {
      case "thread":
        return this.#at(event.id).open(event.value, event.whole);
      case "threadChanged":
        this.#at(event.thread).members[event.member] = event.value;
        return;
      case "turnStarted":
        this.#at(event.thread).startTurn(event.turn);
        return;
      case "turnEnded":
        return this.#at(event.thread).endTurn(event.turn, event.status, event.error);
      case "itemStarted":
      case "itemCompleted":
        return this.#at(event.thread).tell(
          event.turn,
          event.item,
          event.teller,
          event.type === "itemCompleted",
          event.atMs,
        );
      case "delta":
        return this.#at(event.thread).grow(event);
      case "plan":
        this.#at(event.thread).plan = event.plan;
        return;
      case "diff":
        this.#at(event.thread).diff = event.diff;
        return;
      case "usage":
        return this.#at(event.thread).takeUsage(event.usage);
      case "rateLimits":
        this.rateLimits = event.limits;
        return;
      case "error":
        return this.#at(event.thread).noteError(event.message);
      case "asked": {
        const thread = this.#at(event.thread);
        const { id, method, params } = event;
        const others = thread.questions.filter((question) => question.id !== id).slice(1 - MOST_QUESTIONS);
        thread.questions = [...others, { id, method, params }];
        return;
      }
      case "resolved": {
        const thread = this.#at(event.thread);
        thread.questions = thread.questions.filter((question) => question.id !== event.id);
        return;
      }
      case "unknown":
        if (this.unknown.length < MOST_NOTED && !this.unknown.includes(event.method)) this.unknown.push(event.method);
        return;
      case "note":
        this.notes += 1;
        return;
      default:
    }
  }

  /** The state as JSON, the same in every language. */
  toValue() {
    const threads = [...this.threads].sort(([one], [other]) => compareBytes(one, other));
    return {
      threads: Object.fromEntries(threads.map(([id, thread]) => [id, thread.toValue()])),
      rateLimits: this.rateLimits,
      unknown: this.unknown,
      notes: this.notes,
    };
  }
}
