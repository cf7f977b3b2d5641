// Translation of a document by the server, with a link to download the result.

import { describe, detailOf, formatDuration } from "./state.js";
import { say } from "./texts.js";

export class DocumentBox {
  /**
   * parts: the elements box, line, link, stop and retry. request: called with a file and an AbortSignal, returns a
   * promise of the {address, name} of the translation. announce: called with a message about the result.
   */
  constructor({ box, line, link, stop, retry }, request, announce) {
    Object.assign(this, { box, line, link, stop, retry });
    this.request = request;
    this.announce = announce;
    this.stop.addEventListener("click", () => this.close());
    this.retry.addEventListener("click", () => this.translate(this.file));
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
      const time = seconds < 2 ? "" : ` ${formatDuration(seconds)}`;
      this.show("translating", say("documentTranslating", { name: file.name }) + time);
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
    this.box.hidden = true;
  }

  showLink({ address, name }) {
    clearInterval(this.timer);
    this.link.href = address;
    this.link.download = name;
    this.link.textContent = say("documentDownload", { name });
    this.show("done", say("documentTranslated"));
    this.announce(say("documentReady", { name: this.file.name, link: this.link.textContent }));
    if (document.activeElement === this.stop) this.link.focus(); // keep the focus on other elements
  }

  showError(error) {
    clearInterval(this.timer);
    const failure = say("documentFailed", { name: this.file.name, error: describe(error) });
    const time = error.retryAfter && formatDuration(error.retryAfter);
    const message = time ? say("retryLater", { error: failure, time }) : failure;
    this.show("failed", message, detailOf(error));
    this.announce(message);
  }

  show(kind, message, detail = "") {
    this.box.hidden = false;
    this.box.dataset.state = kind;
    this.line.textContent = message;
    this.line.title = detail;
    this.link.hidden = kind !== "done";
    this.retry.hidden = kind !== "failed";
    this.stop.textContent = say(kind === "translating" ? "stop" : "close");
  }
}
