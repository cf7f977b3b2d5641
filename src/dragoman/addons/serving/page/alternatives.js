// The list of alternative translations of a sentence, displayed next to the sentence.

import { HttpError } from "./server.js";
import { describe, formatDuration } from "./state.js";
import { say } from "./texts.js";

/** The maximum number of hypotheses to request. */
const MAX_HYPOTHESES = 5;
/** The distance between the sentence and the box, in pixels. */
const GAP = 6;

export class Alternatives {
  /**
   * parts: the elements box (a popover), list and state. request: returns a promise of the server's response for a
   * sentence and a number of hypotheses.
   * onChoose: called with the index of the sentence and the translation that the user chose.
   */
  constructor({ box, list, state }, request, onChoose) {
    this.request = request;
    this.onChoose = onChoose;
    this.nbest = MAX_HYPOTHESES;
    Object.assign(this, { box, list, state });
    this.box.addEventListener("keydown", (event) => this.onKeydown(event));
    this.box.addEventListener("toggle", ({ newState }) => newState === "closed" && this.close());
    window.addEventListener("resize", () => this.close());
  }

  /**
   * Open the box next to a sentence's element. current: the displayed translation of the sentence. lang, dir: the
   * language and writing direction of the translations.
   */
  async open({ index, element, source, current, lang, dir }) {
    this.close();
    this.index = index;
    this.element = element;
    this.list.lang = lang;
    this.list.dir = dir;
    this.list.replaceChildren();
    this.state.textContent = say("alternativesLoading");
    element.setAttribute("aria-expanded", "true");
    this.box.showPopover();
    this.positionBox();
    const controller = new AbortController();
    this.controller = controller;
    try {
      const texts = await this.fetchTexts(source, controller.signal);
      if (!controller.signal.aborted) this.show(texts, current);
    } catch (error) {
      if (controller.signal.aborted) return;
      const message = describe(error);
      const time = error.retryAfter && formatDuration(error.retryAfter);
      this.state.textContent = time ? say("retryLater", { error: message, time }) : message;
    }
    this.positionBox();
  }

  close() {
    this.controller?.abort();
    this.element?.removeAttribute("aria-expanded");
    if (this.box.matches(":popover-open")) this.box.hidePopover();
  }

  /** Request alternatives. If the server allows fewer, the request is repeated with the limit in its error message. */
  async fetchTexts(source, signal) {
    while (this.nbest > 1) {
      try {
        const { translations } = await this.request(source, this.nbest, signal);
        return this.combine(translations[0].sentences);
      } catch (error) {
        const limit = error instanceof HttpError && error.status === 400 && error.message.match(/at most (\d+)$/);
        if (!limit || Number(limit[1]) >= this.nbest) throw error;
        this.nbest = Number(limit[1]);
      }
    }
    return [];
  }

  /** Return the alternatives of the whole sentence. If the server has split it, the parts are joined rank by rank. */
  combine(sentences) {
    const count = Math.max(0, ...sentences.map(({ hypotheses }) => hypotheses.length));
    return Array.from({ length: count }, (_, rank) =>
      sentences.map(({ hypotheses }) => hypotheses[Math.min(rank, hypotheses.length - 1)].text).join(" "),
    );
  }

  show(texts, current) {
    const alternatives = [...new Set(texts)].filter((text) => text && text !== current);
    this.state.textContent = alternatives.length ? "" : say("alternativesNone");
    const currentWords = new Set(current.split(/\s+/));
    this.list.replaceChildren(...alternatives.map((text) => this.item(text, currentWords)));
    this.list.querySelector("button")?.focus();
  }

  /** Return a list item with an alternative, in which words that are not in the displayed translation are bold. */
  item(text, currentWords) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    for (const part of text.split(/(\s+)/)) {
      if (!part.trim() || currentWords.has(part)) {
        button.append(part);
        continue;
      }
      const difference = document.createElement("b");
      difference.textContent = part;
      button.append(difference);
    }
    button.addEventListener("click", () => {
      this.close();
      this.onChoose(this.index, text);
    });
    item.append(button);
    return item;
  }

  onKeydown(event) {
    const buttons = [...this.list.querySelectorAll("button")];
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step || !buttons.length) return;
    const next = buttons.indexOf(document.activeElement) + step;
    buttons[(next + buttons.length) % buttons.length].focus();
    event.preventDefault();
  }

  /** Position the box below the last line of the sentence, or above the first line if there is more space. */
  positionBox() {
    const lines = [...this.element.getClientRects()];
    const first = lines[0];
    const last = lines.at(-1);
    if (!last) return;
    const { width, height } = this.box.getBoundingClientRect();
    const edge = document.documentElement.clientWidth;
    const left = Math.max(GAP, Math.min(last.left, edge - width - GAP));
    const isBelow = last.bottom + GAP + height <= innerHeight || first.top < innerHeight - last.bottom;
    const top = isBelow ? last.bottom + GAP : first.top - GAP - height;
    this.box.style.left = `${left + scrollX}px`;
    this.box.style.top = `${Math.max(0, top + scrollY)}px`;
  }
}
