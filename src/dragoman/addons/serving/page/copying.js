// The copy button.

import { say } from "./texts.js";

/** The time for which the button shows the result, in milliseconds. */
const RESULT_DURATION = 2000;

/**
 * Connect a copy button. label: the element of its text. getText: returns the text to copy. announce: called with a
 * message about the result.
 */
export function connect({ button, label }, getText, announce) {
  let timer;
  button.addEventListener("click", async () => {
    const isCopied = await copyText(getText());
    button.classList.toggle("is-done", isCopied);
    label.textContent = say(isCopied ? "copied" : "copyFailed");
    announce(label.textContent);
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.classList.remove("is-done");
      label.textContent = say("copy");
    }, RESULT_DURATION);
  });
}

/** Copy a text and return whether it was copied. Uses execCommand where the Clipboard API needs HTTPS or localhost. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "unseen";
    const focused = document.activeElement;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    focused?.focus();
    return isCopied;
  }
}
