// The copy button.

/** How long the button confirms that it has copied, in milliseconds. */
const SHOWN = 2000;

/** text: returns the text to copy. announce: called with the outcome. */
export function watch(text, announce) {
  const button = document.getElementById("copy");
  const label = document.getElementById("copy-text");
  let showing;
  button.addEventListener("click", async () => {
    const done = await copied(text());
    button.classList.toggle("is-done", done);
    label.textContent = done ? "Copied" : "Not copied: select it and press Ctrl C";
    announce(label.textContent);
    clearTimeout(showing);
    showing = setTimeout(() => {
      button.classList.remove("is-done");
      label.textContent = "Copy";
    }, SHOWN);
  });
}

/** Copy a text; returns whether it was copied. The Clipboard API needs https or localhost; other pages use execCommand. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "unseen";
    const before = document.activeElement;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    before?.focus();
    return done;
  }
}
