// The state of the translation, displayed and announced to screen readers.

import { HttpError, UnreachableError, hasKey } from "./server.js";
import { say } from "./texts.js";

/** The maximum length, in characters, of a translation that is announced in full. */
const MAX_ANNOUNCED = 300;
/** The delay of an announcement, during which a further change replaces it, in milliseconds. */
const ANNOUNCEMENT_DELAY = 900;

/** The texts of frequent errors of the server, by status. Other errors are shown as the server describes them. */
const FREQUENT = { 401: "keyRequired", 413: "tooLarge", 503: "busy" };

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
   * doubt: why the result is not reliable, or "". The sign of the line changes. detail: what a user who points at the
   * line reads.
   */
  show(kind, message = "", action = "", doubt = "", detail = doubt) {
    this.line.dataset.state = kind;
    this.line.classList.toggle("is-doubtful", Boolean(doubt));
    this.line.title = detail;
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
  const key = error.status === 403 && hasKey() ? "keyInvalid" : FREQUENT[error.status];
  return key ? say(key) : error.message.charAt(0).toUpperCase() + error.message.slice(1);
}

/** Return the server's own message, which is in English, or "" if the server sent none. */
export function detailOf(error) {
  return error instanceof HttpError ? error.message : "";
}

/** Format a duration in seconds as text. */
export function formatDuration(seconds) {
  if (seconds < 90) return say("seconds", { number: seconds });
  if (seconds < 5400) return say("minutes", { number: Math.round(seconds / 60) });
  return say("hours", { number: Math.round(seconds / 3600) });
}
