// Translation of a document by the server, with a link to download the result.

import { describe, formatDuration } from "./state.js";

const box = document.getElementById("document");
const line = document.getElementById("document-text");
const link = document.getElementById("document-link");
const stop = document.getElementById("document-stop");
const retry = document.getElementById("document-again");

export class DocumentBox {
  /**
   * request: called with a file and an AbortSignal, returns a promise of the {address, name} of the translation.
   * announce: called with a message about the result.
   */
  constructor(request, announce) {
    this.request = request;
    this.announce = announce;
    stop.addEventListener("click", () => this.close());
    retry.addEventListener("click", () => this.translate(this.file));
  }

  /** Translate a file, and cancel the previous one. */
  async translate(file) {
    this.close();
    const controller = new AbortController();
    this.controller = controller;
    this.file = file;
    const start = performance.now();
    const showTime = () => {
      const seconds = Math.round((performance.now() - start) / 1000);
      this.show("translating", `Translating ${file.name} …${seconds < 2 ? "" : ` ${formatDuration(seconds)}`}`);
    };
    this.timer = setInterval(showTime, 1000);
    showTime();
    try {
      const translation = await this.request(file, controller.signal);
      if (!controller.signal.aborted) this.showLink(translation);
    } catch (error) {
      if (!controller.signal.aborted) this.showError(error);
    }
  }

  /** Cancel the request and hide the box. */
  close() {
    clearInterval(this.timer);
    this.controller?.abort();
    this.controller = undefined;
    box.hidden = true;
  }

  showLink({ address, name }) {
    clearInterval(this.timer);
    link.href = address;
    link.download = name;
    link.textContent = `Download ${name}`;
    this.show("done", "Translated:");
    this.announce(`${this.file.name} has been translated: ${link.textContent}`);
    if (document.activeElement === stop) link.focus(); // keep the focus on any other element, such as the text field
  }

  showError(error) {
    clearInterval(this.timer);
    const wait = error.retryAfter ? `. Try again in ${formatDuration(error.retryAfter)}` : "";
    const message = `${this.file.name} could not be translated: ${describe(error)}${wait}`;
    this.show("failed", message);
    this.announce(message);
  }

  show(kind, message) {
    box.hidden = false;
    box.dataset.state = kind;
    line.textContent = message;
    link.hidden = kind !== "done";
    retry.hidden = kind !== "failed";
    stop.textContent = kind === "translating" ? "Stop" : "Close";
  }
}
