// The waits between the starts of a server that ends on its own.

const WAITS = [1, 2, 4, 8, 16, 30];
/** The number of restarts in a row. */
export const MOST_RESTARTS = 10;
/** A server that ran this many milliseconds counts as healthy, and the waits begin anew. */
export const HEALTHY_MS = 60_000;

/** Counts restarts. */
export class Backoff {
  #restarts = 0;

  /**
   * The number of the next restart and the wait before it in milliseconds, after a server has run for some time;
   * undefined if it has been restarted often enough. Chance, from 0 to 1, shortens the wait by up to a fifth.
   */
  next(ranMs, chance = Math.random()) {
    if (ranMs >= HEALTHY_MS) this.#restarts = 0;
    if (this.#restarts === MOST_RESTARTS) return undefined;
    const wait = WAITS[Math.min(this.#restarts, WAITS.length - 1)] * 1000;
    this.#restarts += 1;
    return { attempt: this.#restarts, delayMs: wait * (1 - Math.min(Math.max(chance, 0), 1) / 5) };
  }
}
