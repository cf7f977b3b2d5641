// Scheduling of requests while the user types: delays, retries if the server is busy, and cancellation.

import { HttpError, UnreachableError } from "./server.js";

/** The usual delay between the last keystroke and the request, in milliseconds. */
const DELAY = 300;
/** The maximum time between attempts without a Retry-After header, in seconds. */
const MAX_WAIT = 15;
/** The maximum number of attempts if the server is busy. The number is unlimited if the server cannot be reached. */
const MAX_ATTEMPTS = 6;

export class RequestScheduler {
  /**
   * request: called with an AbortSignal, returns a promise of a response, or null if there is nothing to request.
   * onState: called with the state: idle, typing, translating, done (with the response and its time in seconds), waiting
   * (with the error and the remaining seconds), or failed (with the error). delay: the delay between the last change
   * and the request, in milliseconds.
   */
  constructor(request, onState, delay = DELAY) {
    this.delay = delay;
    this.request = request;
    this.onState = onState;
    this.attempts = 0;
    this.retryAt = 0;
    window.addEventListener("online", () => this.retryAt && this.runNow());
  }

  /** Send the request after a delay, or at the end of the current wait. */
  schedule() {
    this.cancel();
    if (this.retryAt) return;
    this.attempts = 0;
    this.onState("typing", {});
    this.timer = setTimeout(() => this.run(), this.delay);
  }

  /** Send the request immediately, even during a wait. */
  runNow() {
    this.cancel();
    this.endWait();
    this.attempts = 0;
    return this.run();
  }

  /** Cancel the request and any retry, because there is nothing to translate. */
  stop() {
    this.cancel();
    this.endWait();
    this.onState("idle", {});
  }

  /** Cancel the current request. */
  cancel() {
    clearTimeout(this.timer);
    this.controller?.abort();
    this.controller = undefined;
  }

  async run() {
    const controller = new AbortController();
    const start = performance.now();
    const promise = this.request(controller.signal);
    if (promise === null) return;
    this.controller = controller;
    this.onState("translating", {});
    try {
      const response = await promise;
      if (controller.signal.aborted) return;
      this.attempts = 0;
      this.onState("done", { response, seconds: (performance.now() - start) / 1000 });
    } catch (error) {
      if (!controller.signal.aborted) this.handleError(error);
    }
  }

  handleError(error) {
    this.attempts += 1;
    const canRetry = error instanceof HttpError && error.isTemporary && this.attempts < MAX_ATTEMPTS;
    if (!canRetry && !(error instanceof UnreachableError)) {
      this.onState("failed", { error });
      return;
    }
    const seconds = error.retryAfter ?? Math.min(2 ** (this.attempts - 1), MAX_WAIT);
    this.retryAt = Date.now() + seconds * 1000;
    const countDown = () => {
      const remaining = Math.ceil((this.retryAt - Date.now()) / 1000);
      if (remaining > 0) {
        this.onState("waiting", { error, seconds: remaining });
        return;
      }
      this.endWait();
      this.run();
    };
    this.countdown = setInterval(countDown, 1000);
    countDown();
  }

  endWait() {
    clearInterval(this.countdown);
    this.retryAt = 0;
  }
}
