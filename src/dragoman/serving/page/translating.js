// Translation as somebody types: asked a little later, asked again where the server was busy, old answers dropped.

import { Refused, Unreachable } from "./server.js";

/** Milliseconds without a key after which a text is translated. */
const PAUSE = 300;
/** Seconds between tries at most, where the server does not say how many. */
const LONGEST_WAIT = 15;
/** How often a busy server is asked by itself. One that is not reached is asked on and on. */
const TRIES = 6;

export class Translating {
  /**
   * ask: is called with an AbortSignal, and promises an answer; null where there is nothing to ask.
   * told: is called with what goes on: idle, typing, translating, done (with the answer and its seconds), waiting (with
   * the error and the seconds that are left), failed (with the error).
   */
  constructor(ask, told) {
    this.ask = ask;
    this.told = told;
    this.tries = 0;
    this.after = 0;
    window.addEventListener("online", () => this.after && this.now());
  }

  /** Something has changed. While the server is waited for, that wait goes on. */
  later() {
    this.drop();
    if (this.after) return;
    this.tries = 0;
    this.told("typing", {});
    this.timer = setTimeout(() => this.run(), PAUSE);
  }

  /** At once, whatever was waited for. */
  now() {
    this.drop();
    this.endWait();
    this.tries = 0;
    return this.run();
  }

  /** Nothing is to be translated any more. */
  stop() {
    this.drop();
    this.endWait();
    this.told("idle", {});
  }

  /** Whoever is asked is told that nobody wants to know. */
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
    this.told("translating", {});
    try {
      const answer = await work;
      if (asking.signal.aborted) return;
      this.tries = 0;
      this.told("done", { answer, seconds: (performance.now() - began) / 1000 });
    } catch (error) {
      if (!asking.signal.aborted) this.failed(error);
    }
  }

  failed(error) {
    this.tries += 1;
    const passes = error instanceof Unreachable || (error instanceof Refused && error.passes && this.tries < TRIES);
    if (!passes) {
      this.told("failed", { error });
      return;
    }
    const seconds = error.retryAfter ?? Math.min(2 ** (this.tries - 1), LONGEST_WAIT);
    this.after = Date.now() + seconds * 1000;
    const count = () => {
      const left = Math.ceil((this.after - Date.now()) / 1000);
      if (left > 0) {
        this.told("waiting", { error, seconds: left });
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
