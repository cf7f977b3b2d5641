// What is going on, for the eye and for the ear.

import { Refused, Unreachable } from "./server.js";

/** Characters of a translation that is read out. */
const LONGEST_READ = 300;
/** Milliseconds without a change before something is said. */
const QUIET = 900;

const line = document.getElementById("state");
const text = document.getElementById("state-text");
const again = document.getElementById("again");
const announced = document.getElementById("announced");
let saying;

/** kind: as `Translating` names what goes on, or what the page adds to it. */
export function show(kind, message = "", action = "") {
  line.dataset.state = kind;
  text.textContent = message;
  again.textContent = action;
  again.hidden = !action;
}

/** Read out soon, unless something else is by then. */
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

/** What is wrong, for people. */
export function told(error) {
  if (error instanceof Unreachable) return navigator.onLine ? "The server cannot be reached" : "You are offline";
  if (!(error instanceof Refused)) return "This page has a fault";
  if (error.status === 429 && error.retryAfter !== null) return "Too much was asked for";
  if (error.status === 503) return `The server is busy (${error.message})`;
  return error.message.charAt(0).toUpperCase() + error.message.slice(1);
}

/** A wait as people say it. */
export function inTime(seconds) {
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
