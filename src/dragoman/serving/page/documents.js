// A document that the server translates as a whole and the user downloads as a file.

import { describe, formatDuration } from "./state.js";

const box = document.getElementById("document");
const line = document.getElementById("document-text");
const link = document.getElementById("document-link");
const stop = document.getElementById("document-stop");
const again = document.getElementById("document-again");

export class DocumentBox {
  /**
   * ask: called with a file and an AbortSignal, returns a promise of its translation's {address, name}.
   * announce: called with the outcome.
   */
  constructor(ask, announce) {
    this.ask = ask;
    this.announce = announce;
    stop.addEventListener("click", () => this.close());
    again.addEventListener("click", () => this.translate(this.file));
  }

  /** Translate a file, and cancel the previous one. */
  async translate(file) {
    this.close();
    const asking = new AbortController();
    this.asking = asking;
    this.file = file;
    const began = performance.now();
    const count = () => {
      const seconds = Math.round((performance.now() - began) / 1000);
      this.show("translating", `Translating ${file.name} …${seconds < 2 ? "" : ` ${formatDuration(seconds)}`}`);
    };
    this.counting = setInterval(count, 1000);
    count();
    try {
      const found = await this.ask(file, asking.signal);
      if (!asking.signal.aborted) this.done(found);
    } catch (error) {
      if (!asking.signal.aborted) this.failed(error);
    }
  }

  /** Cancel the request. */
  close() {
    clearInterval(this.counting);
    this.asking?.abort();
    this.asking = undefined;
    box.hidden = true;
  }

  done({ address, name }) {
    clearInterval(this.counting);
    link.href = address;
    link.download = name;
    link.textContent = `Download ${name}`;
    this.show("done", "Translated:");
    this.announce(`${this.file.name} is translated: ${link.textContent}`);
    if (document.activeElement === stop) link.focus(); // do not take the focus from other elements, such as the text
  }

  failed(error) {
    clearInterval(this.counting);
    const wait = error.retryAfter ? `. Try again in ${formatDuration(error.retryAfter)}` : "";
    const message = `${this.file.name} was not translated: ${describe(error)}${wait}`;
    this.show("failed", message);
    this.announce(message);
  }

  show(kind, message) {
    box.hidden = false;
    box.dataset.state = kind;
    line.textContent = message;
    link.hidden = kind !== "done";
    again.hidden = kind !== "failed";
    stop.textContent = kind === "translating" ? "Stop" : "Close";
  }
}
