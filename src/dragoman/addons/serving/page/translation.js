// The translation pane, in which sentences and words can be selected by mouse, touch and keyboard.

import { direction, tag } from "./languages.js";
import { locateWords } from "./sentences.js";

export class TranslationPane {
  /**
   * element: the element of the text. onPoint: called with the {sentence, word} at the pointer, or null, and whether the
   * keyboard was used.
   * onChoose: called with the index and the element of the sentence that the user chose.
   */
  constructor(element, onPoint, onChoose) {
    this.onPoint = onPoint;
    this.onChoose = onChoose;
    this.element = element;
    this.text = "";
    this.sentences = [];
    this.highlighted = [];
    this.element.addEventListener("pointermove", (event) => onPoint(event.target.position ?? null, false));
    this.element.addEventListener("pointerleave", () => onPoint(null, false));
    this.element.addEventListener("click", (event) => {
      if (String(getSelection())) return; // the user is selecting text
      onPoint(event.target.position ?? null, false);
      this.choose(this.indexOf(event.target));
    });
    this.element.addEventListener("keydown", (event) => this.onKeydown(event));
    this.element.addEventListener("focusin", (event) => {
      const index = this.indexOf(event.target);
      this.currentWord = this.nextWord;
      this.nextWord = 0;
      if (event.target.matches(":focus-visible")) this.selectWord(index, this.currentWord);
    });
    this.element.addEventListener("focusout", () => onPoint(null, false));
    this.nextWord = 0; // the word to select when the next sentence receives the focus
    this.currentWord = 0;
  }

  setLanguage(code) {
    this.element.lang = tag(code);
    this.element.dir = direction(code);
  }

  /** Show a translation. sentences: in the format of `locateSentences`. */
  show(text, sentences) {
    this.text = text;
    this.sentences = sentences;
    this.highlighted = [];
    this.isStale = false;
    const parts = [];
    let offset = 0;
    this.spans = sentences.map(({ targetRange: [begin, end], doubtful }, sentence) => {
      const element = document.createElement("span");
      element.className = "sentence";
      element.classList.toggle("is-unsure", Boolean(doubtful));
      element.setAttribute("role", "button");
      element.setAttribute("aria-haspopup", "dialog");
      element.tabIndex = sentence === 0 ? 0 : -1;
      const spans = this.appendWords(element, text.slice(begin, end), sentence);
      parts.push(text.slice(offset, begin), element);
      offset = end;
      return spans;
    });
    this.elements = parts.filter((part) => typeof part !== "string");
    this.element.replaceChildren(...parts, text.slice(offset));
  }

  /** Whether the source text has changed since this translation. Set while a new translation is pending. */
  set isStale(stale) {
    this.stale = stale;
    this.element.classList.toggle("is-stale", stale);
    if (stale) this.highlight(0, []);
  }

  /** Replace the translation of a sentence. */
  replace(index, target) {
    const { targetRange: [begin, end] } = this.sentences[index];
    const shift = target.length - (end - begin);
    const sentences = this.sentences.map((sentence, other) => {
      if (other < index) return sentence;
      const [first, last] = sentence.targetRange;
      return other === index
        ? { ...sentence, target, doubtful: false, targetRange: [first, last + shift] }
        : { ...sentence, targetRange: [first + shift, last + shift] };
    });
    this.show(this.text.slice(0, begin) + target + this.text.slice(end), sentences);
  }

  focus(index) {
    for (const [other, element] of this.elements.entries()) element.tabIndex = other === index ? 0 : -1;
    this.elements[index]?.focus();
  }

  highlight(sentence, numbers) {
    for (const span of this.highlighted) span.classList.remove("is-highlighted");
    this.highlighted = numbers.map((number) => this.spans?.[sentence]?.[number]).filter(Boolean);
    for (const span of this.highlighted) span.classList.add("is-highlighted");
  }

  wordTexts(sentence, numbers) {
    return numbers.map((number) => this.spans?.[sentence]?.[number]?.textContent).filter(Boolean);
  }

  appendWords(element, text, sentence) {
    let offset = 0;
    const spans = locateWords(text).map(([begin, end], word) => {
      const span = document.createElement("span");
      span.className = "word";
      span.textContent = text.slice(begin, end);
      span.position = { sentence, word };
      element.append(text.slice(offset, begin), span);
      offset = end;
      return span;
    });
    element.append(text.slice(offset));
    return spans;
  }

  indexOf(target) {
    return this.elements?.indexOf(target.closest(".sentence")) ?? -1;
  }

  choose(index) {
    if (index >= 0 && !this.stale) this.onChoose(index, this.elements[index]);
  }

  /** Move by word with left and right, reversed for right-to-left languages, and by sentence with up and down. */
  onKeydown(event) {
    const index = this.indexOf(event.target);
    if (index < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const forward = this.element.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(index);
    else if (event.key === "Home") this.moveTo(0, 0);
    else if (event.key === "End") this.moveTo(this.spans.length - 1, 0);
    else if (step) this.moveTo(index + step, 0);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.moveBy(index, event.key === forward ? 1 : -1);
    else return;
    event.preventDefault();
  }

  moveBy(index, step) {
    const word = this.currentWord + step;
    if (word < 0) this.moveTo(index - 1, (this.spans[index - 1]?.length ?? 0) - 1);
    else if (word >= this.spans[index].length) this.moveTo(index + 1, 0);
    else this.selectWord(index, word);
  }

  moveTo(index, word) {
    if (index < 0 || index >= this.spans.length) return;
    if (this.elements[index] === document.activeElement) {
      this.selectWord(index, word);
      return;
    }
    this.nextWord = word;
    this.focus(index);
  }

  selectWord(sentence, word) {
    this.currentWord = word;
    if (!this.stale) this.onPoint({ sentence, word }, true);
  }
}
