// The state of the translation, displayed and announced to screen readers.

import { HttpError, UnreachableError } from "./server.js";
import { say } from "./texts.js";

/** The maximum length, in characters, of a translation that is announced in full. */
const MAX_ANNOUNCED = 300;
/** The delay of an announcement, during which a further change replaces it, in milliseconds. */
const ANNOUNCEMENT_DELAY = 900;

export class StateLine {
  /** line, text, retry: the elements of the line, of its message, and of the retry button. */
  constructor({ line, text, retry }) {
    this.line = line;
    this.text = text;
    this.retry = retry;
  }

  get kind() {
    return this.line.dataset.state;
  }

  /**
   * Show a state. kind: a state of `RequestScheduler`. action: the label of the retry button, or "" to hide the button.
   * doubt: why the result is not reliable, or "". The sign of the line changes, and the user who points at it reads why.
   */
  show(kind, message = "", action = "", doubt = "") {
    this.line.dataset.state = kind;
    this.line.classList.toggle("is-doubtful", Boolean(doubt));
    this.line.title = doubt;
    this.text.textContent = message;
    this.retry.textContent = action;
    this.retry.hidden = !action;
  }
}

export class Announcer {
  /** region: the live region, which screen readers announce. */
  constructor(region) {
    this.region = region;
  }

  /** Announce a message after a delay, unless another message replaces it. */
  announce(message, delay = ANNOUNCEMENT_DELAY) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.region.textContent = message;
    }, delay);
  }

  announceTranslation(translation) {
    const count = translation.trim().split(/\s+/).length;
    this.announce(translation.length <= MAX_ANNOUNCED ? translation : say("ready", { count }));
  }
}

/** Return a message for the user that describes an error. */
export function describe(error) {
  if (error instanceof UnreachableError) return say(navigator.onLine ? "unreachable" : "offline");
  if (!(error instanceof HttpError)) return say("internalError");
  if (error.status === 429 && error.retryAfter !== null) return say("quotaExceeded");
  if (error.status === 503) return say("busy", { reason: error.message });
  return error.message.charAt(0).toUpperCase() + error.message.slice(1);
}

/** Format a duration in seconds as text. */
export function formatDuration(seconds) {
  if (seconds < 90) return say("seconds", { number: seconds });
  if (seconds < 5400) return say("minutes", { number: Math.round(seconds / 60) });
  return say("hours", { number: Math.round(seconds / 3600) });
}
