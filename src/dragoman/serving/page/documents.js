// A document that is translated as a whole, and fetched as a file.

import { inTime, told } from "./state.js";

const box = document.getElementById("document");
const line = document.getElementById("document-text");
const link = document.getElementById("document-link");
const stop = document.getElementById("document-stop");
const again = document.getElementById("document-again");

export class DocumentBox {
  /**
   * ask: is called with a file and an AbortSignal, and promises its translation's {address, name}.
   * announce: is called with what became of it.
   */
  constructor(ask, announce) {
    this.ask = ask;
    this.announce = announce;
    stop.addEventListener("click", () => this.close());
    again.addEventListener("click", () => this.translate(this.file));
  }

  /** In place of the document before, which nobody wants any more. */
  async translate(file) {
    this.close();
    const asking = new AbortController();
    this.asking = asking;
    this.file = file;
    const began = performance.now();
    const count = () => {
      const seconds = Math.round((performance.now() - began) / 1000);
      this.show("translating", `Translating ${file.name} …${seconds < 2 ? "" : ` ${inTime(seconds)}`}`);
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

  /** Whoever translates it is told that nobody waits. */
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
    if (document.activeElement === stop) link.focus(); // who is elsewhere, such as in the text, stays there
  }

  failed(error) {
    clearInterval(this.counting);
    const wait = error.retryAfter ? `. Try again in ${inTime(error.retryAfter)}` : "";
    const message = `${this.file.name} was not translated: ${told(error)}${wait}`;
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
