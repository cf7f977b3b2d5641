// Translation while the user types: requests are delayed, retried if the server is busy, and cancelled if out of date.

import { RefusedError, UnreachableError } from "./server.js";

/** The delay between the last key and the translation, in milliseconds. */
const PAUSE = 300;
/** The longest time between attempts in seconds, if the server sends no Retry-After. */
const LONGEST_WAIT = 15;
/** The number of automatic attempts if the server is busy. If it cannot be reached, there is no limit. */
const MAX_ATTEMPTS = 6;

export class Translating {
  /**
   * ask: called with an AbortSignal, returns a promise of an answer, or null if there is nothing to request.
   * onState: called with the state: idle, typing, translating, done (with the answer and the seconds it took), waiting
   * (with the error and the remaining seconds), or failed (with the error).
   */
  constructor(ask, onState) {
    this.ask = ask;
    this.onState = onState;
    this.attempts = 0;
    this.after = 0;
    window.addEventListener("online", () => this.after && this.now());
  }

  /** Translate after a delay. If the server has asked to wait, continue waiting. */
  later() {
    this.drop();
    if (this.after) return;
    this.attempts = 0;
    this.onState("typing", {});
    this.timer = setTimeout(() => this.run(), PAUSE);
  }

  /** Translate at once, even during a wait. */
  now() {
    this.drop();
    this.endWait();
    this.attempts = 0;
    return this.run();
  }

  /** Stop: there is nothing to translate. */
  stop() {
    this.drop();
    this.endWait();
    this.onState("idle", {});
  }

  /** Cancel the request. */
  drop() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = undefined;
  }

  async run() {
    const asking = new AbortController();
    const began = performance.now();
    const work = this.ask(asking.signal);
    if (work === null) return;
    this.asking = asking;
    this.onState("translating", {});
    try {
      const answer = await work;
      if (asking.signal.aborted) return;
      this.attempts = 0;
      this.onState("done", { answer, seconds: (performance.now() - began) / 1000 });
    } catch (error) {
      if (!asking.signal.aborted) this.failed(error);
    }
  }

  failed(error) {
    this.attempts += 1;
    const isBusy = error instanceof RefusedError && error.isTemporary && this.attempts < MAX_ATTEMPTS;
    if (!isBusy && !(error instanceof UnreachableError)) {
      this.onState("failed", { error });
      return;
    }
    const seconds = error.retryAfter ?? Math.min(2 ** (this.attempts - 1), LONGEST_WAIT);
    this.after = Date.now() + seconds * 1000;
    const count = () => {
      const left = Math.ceil((this.after - Date.now()) / 1000);
      if (left > 0) {
        this.onState("waiting", { error, seconds: left });
        return;
      }
      this.endWait();
      this.run();
    };
    this.counting = setInterval(count, 1000);
    count();
  }

  endWait() {
    clearInterval(this.counting);
    this.after = 0;
  }
}
