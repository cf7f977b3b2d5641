// The source pane: a text field over an element with the same text, in which words can be highlighted.

import { direction, tag } from "./languages.js";
import { countCharacters, locateWords } from "./sentences.js";
import { formatNumber, say } from "./texts.js";

export class SourcePane {
  /**
   * parts: the elements pane, field, mirror, counter and problem. onChange: called when the text has changed. onPoint:
   * called with the {sentence, word} at the pointer, or null.
   */
  constructor({ pane, field, mirror, counter, problem }, onChange, onPoint) {
    this.limit = Infinity;
    this.highlighted = [];
    Object.assign(this, { pane, field, mirror, counter, problem });
    this.field.addEventListener("input", () => {
      this.update();
      onChange();
    });
    this.field.addEventListener("pointermove", (event) => onPoint(this.wordAtPoint(event.clientX, event.clientY)));
    this.field.addEventListener("pointerleave", () => onPoint(null));
    this.field.addEventListener("click", (event) => onPoint(this.wordAtPoint(event.clientX, event.clientY)));
    this.field.addEventListener("blur", () => onPoint(null));
    this.field.addEventListener("keyup", ({ key }) => {
      if (key.startsWith("Arrow") || key === "Home" || key === "End") onPoint(this.wordAtCaret(this.field.selectionStart));
    });
    this.update();
  }

  /** The text. Lone surrogates are replaced, as on the server. */
  get value() {
    return this.field.value.toWellFormed?.() ?? this.field.value;
  }

  set value(text) {
    this.field.value = text;
    this.update();
  }

  get isTooLong() {
    return countCharacters(this.value) > this.limit;
  }

  /** Set the language of the text. code: a language code, or null for an unknown language. */
  setLanguage(code) {
    const dir = code === null ? "auto" : direction(code);
    for (const element of [this.field, this.mirror]) {
      element.lang = code === null ? "" : tag(code);
      element.dir = dir;
    }
  }

  /** Show a problem with the text or a file until the text changes. An empty string hides the message. */
  showProblem(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    this.field.setAttribute("aria-invalid", String(Boolean(problem)));
  }

  /** Make the words of sentences selectable until the text changes. sentences: in the format of `locateSentences`. */
  show(sentences) {
    const text = this.value;
    const parts = [];
    let offset = 0;
    this.spans = sentences.map(({ sourceRange: [begin, end] }, sentence) =>
      locateWords(text.slice(begin, end)).map(([first, last], word) => {
        parts.push(text.slice(offset, begin + first));
        offset = begin + last;
        const span = document.createElement("span");
        span.className = "word";
        span.textContent = text.slice(begin + first, offset);
        span.position = { sentence, word };
        span.end = offset;
        parts.push(span);
        return span;
      }),
    );
    this.highlighted = [];
    this.mirror.replaceChildren(...parts, `${text.slice(offset) || (text ? "" : this.field.placeholder)}\u200b`);
  }

  /** Highlight only the given words of a sentence. numbers: the indices of the words. */
  highlight(sentence, numbers) {
    for (const span of this.highlighted) span.classList.remove("is-highlighted");
    this.highlighted = numbers.map((number) => this.spans?.[sentence]?.[number]).filter(Boolean);
    for (const span of this.highlighted) span.classList.add("is-highlighted");
  }

  /** Return the given words of a sentence. numbers: the indices of the words. */
  wordTexts(sentence, numbers) {
    return numbers.map((number) => this.spans?.[sentence]?.[number]?.textContent).filter(Boolean);
  }

  update() {
    this.spans = undefined;
    this.highlighted = [];
    this.mirror.textContent = `${this.value || this.field.placeholder}\u200b`; // its height is that of the field
    const size = countCharacters(this.value);
    const limit = this.limit === Infinity ? "" : ` / ${formatNumber(this.limit)}`;
    this.counter.textContent = formatNumber(size) + limit;
    this.counter.classList.toggle("over", size > this.limit);
    const excess = size - this.limit;
    this.showProblem(excess > 0 ? say("charactersOver", { count: excess }) : "");
    this.pane.classList.toggle("is-empty", !this.value);
    this.pane.parentElement.classList.toggle("is-long", this.value.length > 400);
  }

  wordAtPoint(x, y) {
    return document.elementsFromPoint(x, y).find((element) => element.parentNode === this.mirror && element.position)?.position ?? null;
  }

  wordAtCaret(caret) {
    return this.spans?.flat().find(({ end }) => caret <= end)?.position ?? null;
  }
}
