// The translation: sentences and words that can be selected by mouse, touch and keyboard.

import { direction, tag } from "./languages.js";
import { words } from "./sentences.js";

export class TranslationPane {
  /**
   * pointed: called with a word's sentence and number and whether a key selected it, or with null.
   * chosen: called with a sentence's number and its element.
   */
  constructor(pointed, chosen) {
    this.pointed = pointed;
    this.chosen = chosen;
    this.element = document.getElementById("translation");
    this.text = "";
    this.sentences = [];
    this.lit = [];
    this.element.addEventListener("pointermove", (event) => pointed(event.target.place ?? null, false));
    this.element.addEventListener("pointerleave", () => pointed(null, false));
    this.element.addEventListener("click", (event) => {
      if (String(getSelection())) return; // the user is selecting text
      pointed(event.target.place ?? null, false);
      this.choose(this.numberOf(event.target));
    });
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    this.element.addEventListener("focusin", (event) => {
      const number = this.numberOf(event.target);
      this.at = this.word;
      this.word = 0;
      if (event.target.matches(":focus-visible")) this.point(number, this.at);
    });
    this.element.addEventListener("focusout", () => pointed(null, false));
    this.word = 0; // in the sentence that receives the focus next
    this.at = 0;
  }

  setLanguage(code) {
    this.element.lang = tag(code);
    this.element.dir = direction(code);
  }

  /** Show a translation. sentences: as `locateSentences` returns them. */
  show(text, sentences) {
    this.text = text;
    this.sentences = sentences;
    this.lit = [];
    this.isStale = false;
    const parts = [];
    let place = 0;
    this.spans = sentences.map(({ to: [begin, end] }, sentence) => {
      const element = document.createElement("span");
      element.className = "sentence";
      element.setAttribute("role", "button");
      element.setAttribute("aria-haspopup", "dialog");
      element.tabIndex = sentence === 0 ? 0 : -1;
      const spans = this.wordsInto(element, text.slice(begin, end), sentence);
      parts.push(text.slice(place, begin), element);
      place = end;
      return spans;
    });
    this.elements = parts.filter((part) => typeof part !== "string");
    this.element.replaceChildren(...parts, text.slice(place));
  }

  /** Whether the text has changed, so that another translation will follow. */
  set isStale(stale) {
    this.stale = stale;
    this.element.classList.toggle("is-stale", stale);
    if (stale) this.light(0, []);
  }

  /** Replace a sentence's translation. */
  replace(number, target) {
    const { to: [begin, end] } = this.sentences[number];
    const more = target.length - (end - begin);
    const sentences = this.sentences.map((sentence, place) => {
      if (place < number) return sentence;
      const [from, until] = sentence.to;
      return place === number
        ? { ...sentence, target, to: [from, until + more] }
        : { ...sentence, to: [from + more, until + more] };
    });
    this.show(this.text.slice(0, begin) + target + this.text.slice(end), sentences);
  }

  focus(number) {
    for (const [place, element] of this.elements.entries()) element.tabIndex = place === number ? 0 : -1;
    this.elements[number]?.focus();
  }

  light(sentence, numbers) {
    for (const span of this.lit) span.classList.remove("lit");
    this.lit = numbers.map((number) => this.spans?.[sentence]?.[number]).filter(Boolean);
    for (const span of this.lit) span.classList.add("lit");
  }

  texts(sentence, numbers) {
    return numbers.map((number) => this.spans?.[sentence]?.[number]?.textContent).filter(Boolean);
  }

  wordsInto(element, text, sentence) {
    let place = 0;
    const spans = words(text).map(([begin, end], word) => {
      const span = document.createElement("span");
      span.className = "word";
      span.textContent = text.slice(begin, end);
      span.place = { sentence, word };
      element.append(text.slice(place, begin), span);
      place = end;
      return span;
    });
    element.append(text.slice(place));
    return spans;
  }

  numberOf(target) {
    return this.elements?.indexOf(target.closest(".sentence")) ?? -1;
  }

  choose(number) {
    if (number >= 0 && !this.stale) this.chosen(number, this.elements[number]);
  }

  /** Move by word with left and right, reversed for right-to-left languages, and by sentence with up and down. */
  pressed(event) {
    const number = this.numberOf(event.target);
    if (number < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const forward = this.element.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(number);
    else if (event.key === "Home") this.go(0, 0);
    else if (event.key === "End") this.go(this.spans.length - 1, 0);
    else if (step) this.go(number + step, 0);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.move(number, event.key === forward ? 1 : -1);
    else return;
    event.preventDefault();
  }

  move(number, step) {
    const word = this.at + step;
    if (word < 0) this.go(number - 1, (this.spans[number - 1]?.length ?? 0) - 1);
    else if (word >= this.spans[number].length) this.go(number + 1, 0);
    else this.point(number, word);
  }

  go(number, word) {
    if (number < 0 || number >= this.spans.length) return;
    if (this.elements[number] === document.activeElement) {
      this.point(number, word);
      return;
    }
    this.word = word;
    this.focus(number);
  }

  point(sentence, word) {
    this.at = word;
    if (!this.stale) this.pointed({ sentence, word }, true);
  }
}
