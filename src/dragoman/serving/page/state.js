// The state of the translation, displayed and announced to screen readers.

import { RefusedError, UnreachableError } from "./server.js";

/** The longest translation that is announced in full, in characters. */
const LONGEST_READ = 300;
/** How long announcements wait for a further change, in milliseconds. */
const QUIET = 900;

const line = document.getElementById("state");
const text = document.getElementById("state-text");
const again = document.getElementById("again");
const announced = document.getElementById("announced");
let saying;

/** Show a state. kind: a state of `Translating`, or one that the page adds. */
export function show(kind, message = "", action = "") {
  line.dataset.state = kind;
  text.textContent = message;
  again.textContent = action;
  again.hidden = !action;
}

/** Announce a message soon, unless another one follows. */
export function announce(message, wait = QUIET) {
  clearTimeout(saying);
  saying = setTimeout(() => {
    announced.textContent = message;
  }, wait);
}

export function announceTranslation(translation) {
  const count = translation.trim().split(/\s+/).length;
  announce(translation.length <= LONGEST_READ ? translation : `The translation is ready: ${count} words.`);
}

/** Describe an error. */
export function describe(error) {
  if (error instanceof UnreachableError) return navigator.onLine ? "The server cannot be reached" : "You are offline";
  if (!(error instanceof RefusedError)) return "Internal error of this page";
  if (error.status === 429 && error.retryAfter !== null) return "Quota exceeded";
  if (error.status === 503) return `The server is busy (${error.message})`;
  return error.message.charAt(0).toUpperCase() + error.message.slice(1);
}

/** Describe a duration. */
export function formatDuration(seconds) {
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
