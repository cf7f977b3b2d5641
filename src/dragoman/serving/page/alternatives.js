// Alternatives of a sentence, in a box below it.

import { RefusedError } from "./server.js";

/** The number of hypotheses to request. */
const WANTED = 5;
/** The distance between the sentence and the box, in pixels. */
const GAP = 6;

export class Alternatives {
  /**
   * ask: returns a promise of the server's answer for a sentence and a number of hypotheses.
   * chosen: called with the number of the sentence and the translation that the user chose.
   */
  constructor(ask, chosen) {
    this.ask = ask;
    this.chosen = chosen;
    this.wanted = WANTED;
    this.box = document.getElementById("alternatives");
    this.list = document.getElementById("alternatives-list");
    this.state = document.getElementById("alternatives-state");
    this.box.addEventListener("keydown", (event) => this.pressed(event));
    this.box.addEventListener("toggle", ({ newState }) => newState === "closed" && this.close());
    window.addEventListener("resize", () => this.close());
  }

  /** Open the box below a sentence's element. now: its displayed translation. lang, dir: of the translations. */
  async open({ number, element, source, now, lang, dir }) {
    this.close();
    this.number = number;
    this.element = element;
    this.list.lang = lang;
    this.list.dir = dir;
    this.list.replaceChildren();
    this.state.textContent = "Looking for alternatives …";
    element.setAttribute("aria-expanded", "true");
    this.box.showPopover();
    this.place();
    const asking = new AbortController();
    this.asking = asking;
    try {
      const found = await this.find(source, asking.signal);
      if (!asking.signal.aborted) this.show(found, now);
    } catch (error) {
      if (asking.signal.aborted) return;
      const later = error.retryAfter ? ` Try again in ${error.retryAfter} s.` : "";
      this.state.textContent = error instanceof RefusedError ? `${error.message}.${later}` : "The server cannot be reached.";
    }
    this.place();
  }

  close() {
    this.asking?.abort();
    this.element?.removeAttribute("aria-expanded");
    if (this.box.matches(":popover-open")) this.box.hidePopover();
  }

  /** Request as many alternatives as the server allows; if it allows fewer, its error message gives the number. */
  async find(source, signal) {
    while (this.wanted > 1) {
      try {
        const { translations } = await this.ask(source, this.wanted, signal);
        return this.joined(translations[0].sentences);
      } catch (error) {
        const most = error instanceof RefusedError && error.status === 400 && error.message.match(/at most (\d+)$/);
        if (!most || Number(most[1]) >= this.wanted) throw error;
        this.wanted = Number(most[1]);
      }
    }
    return [];
  }

  /** If the server splits the sentence further, combine the alternatives of its parts rank by rank. */
  joined(sentences) {
    const most = Math.max(0, ...sentences.map(({ hypotheses }) => hypotheses.length));
    return Array.from({ length: most }, (_, rank) =>
      sentences.map(({ hypotheses }) => hypotheses[Math.min(rank, hypotheses.length - 1)].text).join(" "),
    );
  }

  show(found, now) {
    const others = [...new Set(found)].filter((text) => text && text !== now);
    this.state.textContent = others.length ? "" : "There are no alternatives for this sentence.";
    const known = new Set(now.split(/\s+/));
    this.list.replaceChildren(...others.map((text) => this.item(text, known)));
    this.list.querySelector("button")?.focus();
  }

  /** Return a list item with an alternative, in which words that the displayed translation lacks are marked. */
  item(text, known) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    for (const part of text.split(/(\s+)/)) {
      if (!part.trim() || known.has(part)) {
        button.append(part);
        continue;
      }
      const other = document.createElement("b");
      other.textContent = part;
      button.append(other);
    }
    button.addEventListener("click", () => {
      this.close();
      this.chosen(this.number, text);
    });
    item.append(button);
    return item;
  }

  pressed(event) {
    const buttons = [...this.list.querySelectorAll("button")];
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step || !buttons.length) return;
    const next = buttons.indexOf(document.activeElement) + step;
    buttons[(next + buttons.length) % buttons.length].focus();
    event.preventDefault();
  }

  /** Place the box below the sentence's last line, or above its first one if there is more space. */
  place() {
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
