// The threads that a program follows, across breaks of the connection. A thread is in one state of its life, and only
// known steps lead to the next. After a break each thread is subscribed to from its last number; turns that were sent and
// not answered are sent again under their own name, so that a server which has one already does not take it twice.

const INVALID_REQUEST = -32600;
const NO_METHOD = -32601;

const RESTING = ["active", "archived"];
const STEPS = Object.freeze({
  created: ["configured"],
  configured: RESTING,
  active: ["completed", "interrupted"],
  completed: RESTING,
  interrupted: RESTING,
  archived: [],
});

/** The states of a thread's life. */
export const LIVES = Object.freeze(Object.keys(STEPS));

/** Whether a step leads from one state to another. */
export const mayBecome = (from, to) => STEPS[from].includes(to);

/** The threads that a program follows. */
export class Registry {
  #threads = new Map();

  /** Follows a thread that was created. */
  follow(thread) {
    let followed = this.#threads.get(thread);
    if (followed === undefined) {
      // `log` and `after` are the last number that was seen; `current` and `last` count in this connection.
      followed = { life: "created", log: null, after: null, current: null, last: -1, isSubscribed: false };
      // `running` is a turn that was seen to start, and not to end. `idleAt` is the last number when the server answered the
      // last subscription, if it ran no turn then; `cut` is the turn that had started by then, and was not seen to end.
      Object.assign(followed, { running: null, idleAt: null, cut: null, unanswered: new Map() });
      this.#threads.set(thread, followed);
    }
    return followed;
  }

  /** Stops following a thread. */
  forget(thread) {
    this.#threads.delete(thread);
  }

  /** The state of a thread's life. */
  life(thread) {
    return this.#threads.get(thread)?.life;
  }

  /** Takes a step in the life of a thread; one that does not exist is refused and changes nothing. */
  step(thread, to) {
    const followed = this.#threads.get(thread);
    const from = followed?.life ?? "created";
    if (followed === undefined || !mayBecome(from, to)) {
      throw new Error(`thread ${thread} is ${from} and cannot become ${to}`);
    }
    followed.life = to;
  }

  /**
   * Takes the answer to `thread/subscribe`. Unless it replaces everything, events up to its number are still to come.
   */
  subscribed(thread, answer) {
    const followed = this.follow(thread);
    if (typeof answer?.logId !== "string") return;
    followed.isSubscribed = true;
    const isReset = answer.reset === true;
    if (answer.logId !== followed.current || isReset) [followed.current, followed.last] = [answer.logId, -1];
    // A thread that replaces everything tells the end of each turn itself.
    const isIdle = !isReset && answer.thread?.status?.type === "idle";
    followed.idleAt = isIdle && Number.isInteger(answer.seq) ? answer.seq : null;
    followed.cut = isIdle ? followed.running : null;
    if (isReset) {
      [followed.log, followed.after] = [answer.logId, Number.isInteger(answer.seq) ? answer.seq : null];
      const last = Array.isArray(answer.thread?.turns) ? answer.thread.turns.at(-1) : undefined;
      followed.running = last?.status === "inProgress" ? last.id : null;
    }
  }

  /**
   * Takes an event with its number. Once everything that was missed is told, a turn that runs nowhere any more has ended:
   * its end is returned, because nothing else tells it.
   */
  note(event, seq) {
    const thread = event.type === "other" ? event.params?.threadId : event.thread;
    const followed = this.#threads.get(thread);
    if (followed === undefined) return undefined;
    if (event.type === "turnStarted") {
      followed.running = event.turn;
      // One that started later runs; the server may say that it has caught up only after its start.
      if (followed.idleAt !== null && seq !== undefined && seq <= followed.idleAt) followed.cut = event.turn;
    } else if (event.type === "turnEnded") {
      this.#ended(followed, event.turn);
    } else if (event.type === "other" && event.method === "thread/caughtUp") {
      // Everything up to its number is complete.
      const { logId, seq: upTo } = event.params;
      if (Number.isInteger(upTo) && logId === followed.current) this.saw(thread, upTo);
      return this.#endOfCut(thread, followed);
    }
    return undefined;
  }

  /** The end of a turn that no server runs any more. */
  #endOfCut(thread, followed) {
    const turn = followed.cut;
    if (turn === null) return undefined;
    this.#ended(followed, turn);
    return { type: "turnEnded", thread, turn, status: "interrupted", error: null };
  }

  /** Takes the number of an event; false if it was reported already. */
  saw(thread, seq) {
    const followed = this.#threads.get(thread);
    if (followed === undefined || followed.current === null) return true;
    if (seq <= followed.last) return false;
    followed.last = followed.after = seq;
    followed.log = followed.current;
    return true;
  }

  #ended(followed, turn) {
    if (followed.running === turn) followed.running = null;
    if (followed.cut === turn) followed.cut = null;
  }

  /** Records a turn that is about to be sent. Its parameters get a `clientUserMessageId` if they have none. */
  sending(thread, params) {
    params.clientUserMessageId ??= crypto.randomUUID();
    this.follow(thread).unanswered.set(params.clientUserMessageId, params);
    return params.clientUserMessageId;
  }

  /** A turn was answered, or refused for good. */
  answered(thread, name) {
    this.#threads.get(thread)?.unanswered.delete(name);
  }

  /**
   * After a break: subscribes to each thread from its last number, and sends again what was not answered. Events and open
   * questions arrive as the server sends them again; an answer with `reset` replaces what was known, and is passed on.
   * Returns the threads that the server refuses, with its reasons. If the connection breaks again, this fails and is to
   * be called again.
   * @param {{call: (method: string, params: unknown) => Promise<any>}} client
   * @param {(thread: string, answer: any) => void} [recovered]
   * @returns {Promise<Map<string, string>>}
   */
  async recover(client, recovered = () => {}) {
    const refused = new Map();
    for (const [thread, followed] of [...this.#threads]) {
      if (followed.life === "archived") continue;
      try {
        recovered(thread, await this.#subscribe(client, thread, followed));
      } catch (error) {
        if (error.code === undefined) throw error;
        refused.set(thread, error.message);
        continue;
      }
      for (const [name, params] of [...followed.unanswered]) {
        // A turn that is refused is answered: sending it once more would not help.
        await client.call("turn/start", params).catch((error) => {
          if (error.code === undefined) throw error;
        });
        followed.unanswered.delete(name);
      }
    }
    return refused;
  }

  async #subscribe(client, thread, followed) {
    followed.isSubscribed = false;
    try {
      const answer = await client.call("thread/subscribe", {
        threadId: thread,
        after: followed.after,
        logId: followed.log,
      });
      // The connection has told it already, if this registry is in its options.
      if (!followed.isSubscribed) this.subscribed(thread, answer);
      return answer;
    } catch (error) {
      if (error.code !== INVALID_REQUEST && error.code !== NO_METHOD) throw error;
      // A server of another release has no numbers; it sends the whole thread.
      followed.current = null;
      return { ...(await client.call("thread/resume", { threadId: thread })), reset: true };
    }
  }
}
