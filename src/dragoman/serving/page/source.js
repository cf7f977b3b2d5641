// The source text: a text field over an element with the same text, whose words can be highlighted.

import { direction, tag } from "./languages.js";
import { characters, words } from "./sentences.js";

export class SourcePane {
  /** changed: called when the text has changed. pointed: called with a word's sentence and number, or null. */
  constructor(changed, pointed) {
    this.limit = Infinity;
    this.lit = [];
    this.field = document.getElementById("text");
    this.mirror = document.getElementById("mirror");
    this.counter = document.getElementById("counter");
    this.problem = document.getElementById("text-problem");
    this.field.addEventListener("input", () => {
      this.changed();
      changed();
    });
    this.field.addEventListener("pointermove", (event) => pointed(this.wordAt(event.clientX, event.clientY)));
    this.field.addEventListener("pointerleave", () => pointed(null));
    this.field.addEventListener("click", (event) => pointed(this.wordAt(event.clientX, event.clientY)));
    this.field.addEventListener("blur", () => pointed(null));
    this.field.addEventListener("keyup", ({ key }) => {
      if (key.startsWith("Arrow") || key === "Home" || key === "End") pointed(this.wordOf(this.field.selectionStart));
    });
    this.changed();
  }

  /** The text without lone surrogates, which the server would replace. */
  get value() {
    return this.field.value.toWellFormed?.() ?? this.field.value;
  }

  set value(text) {
    this.field.value = text;
    this.changed();
  }

  get isTooLong() {
    return characters(this.value) > this.limit;
  }

  /** code: null if the language is unknown. */
  setLanguage(code) {
    const dir = code === null ? "auto" : direction(code);
    for (const element of [this.field, this.mirror]) {
      element.lang = code === null ? "" : tag(code);
      element.dir = dir;
    }
  }

  /** Show a problem of the text or a file until the text changes; "" hides it. */
  showProblem(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    this.field.setAttribute("aria-invalid", String(Boolean(problem)));
  }

  /** Make the words of sentences, as `locateSentences` returns them, selectable until the text changes. */
  show(sentences) {
    const text = this.value;
    const parts = [];
    let place = 0;
    this.spans = sentences.map(({ from: [begin, end] }, sentence) =>
      words(text.slice(begin, end)).map(([first, last], word) => {
        parts.push(text.slice(place, begin + first));
        place = begin + last;
        const span = document.createElement("span");
        span.className = "word";
        span.textContent = text.slice(begin + first, place);
        span.place = { sentence, word };
        span.end = place;
        parts.push(span);
        return span;
      }),
    );
    this.lit = [];
    this.mirror.replaceChildren(...parts, `${text.slice(place)}\u200b`);
  }

  /** Highlight words of a sentence, and no others. */
  light(sentence, numbers) {
    for (const span of this.lit) span.classList.remove("lit");
    this.lit = numbers.map((number) => this.spans?.[sentence]?.[number]).filter(Boolean);
    for (const span of this.lit) span.classList.add("lit");
  }

  /** Return words of a sentence as texts. */
  texts(sentence, numbers) {
    return numbers.map((number) => this.spans?.[sentence]?.[number]?.textContent).filter(Boolean);
  }

  changed() {
    this.spans = undefined;
    this.lit = [];
    this.mirror.textContent = `${this.value}\u200b`;
    const size = characters(this.value);
    const most = this.limit === Infinity ? "" : ` / ${this.limit.toLocaleString("en")}`;
    this.counter.textContent = `${size.toLocaleString("en")}${most}`;
    this.counter.classList.toggle("over", size > this.limit);
    const over = size - this.limit;
    this.showProblem(
      over > 0
        ? `${over.toLocaleString("en")} ${over === 1 ? "character" : "characters"} over this server's limit: shorten the text, or translate it in parts.`
        : "",
    );
    const pane = document.getElementById("source-pane");
    pane.classList.toggle("is-empty", !this.value);
    document.querySelector(".panes").classList.toggle("is-long", this.value.length > 400);
  }

  wordAt(x, y) {
    return document.elementsFromPoint(x, y).find((each) => each.parentNode === this.mirror && each.place)?.place ?? null;
  }

  wordOf(caret) {
    return this.spans?.flat().find(({ end }) => caret <= end)?.place ?? null;
  }
}
