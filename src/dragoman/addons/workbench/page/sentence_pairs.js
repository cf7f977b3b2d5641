// A file of sentence pairs, which are shown one after another, in the order of the file or by the difference of two models.

import { choice } from "./controls.js";
import { make, newId } from "./dom.js";
import { Bars } from "./drawings/bars.js";

export class SentencePairs {
  constructor(root, { store, workspace, announce }) {
    Object.assign(this, { store, workspace, announce, order: [], pairs: [] });
    const file = newId();
    this.file = make("input", { type: "file", id: file, accept: ".tsv,.txt,text/plain,text/tab-separated-values", onchange: () => this.read() });
    this.previous = make("button", { type: "button", class: "plain", onclick: () => this.move(-1) }, "Previous");
    this.next = make("button", { type: "button", class: "plain", onclick: () => this.move(1) }, "Next");
    this.place = make("span", { class: "small muted", role: "status" });
    this.orders = choice(store, "order", "Order of the sentences", [["", "As in the file"], ["chrf", "By chrF2"], ["bleu", "By BLEU"]]);
    const remove = make("button", { type: "button", class: "plain", onclick: () => this.remove() }, "Close the file");
    this.steps = make("div", { class: "pages" }, this.previous, this.next, this.place, this.orders, remove);
    this.problem = make("p", { class: "problem", role: "alert", hidden: true });
    this.note = make("p", { class: "small muted" });
    this.ranking = make("section", { class: "single ranking", "aria-label": "Sentences by difference", hidden: true }, make("h2", { class: "head-title" }, "Sentences by difference"), this.note);
    const hint = make("p", { class: "small muted", id: newId() }, "One sentence per line, a tab, and its reference; the file becomes part of the address.");
    this.file.setAttribute("aria-describedby", hint.id);
    root.append(make("details", { class: "numbers pairs" }, make("summary", {}, "Step through a file"), make("div", { class: "control" }, make("label", { for: file, class: "small muted" }, "Sentence pairs (TSV)"), this.file, hint), this.problem), this.steps, this.ranking);
    this.details = this.problem.parentElement;
    this.bars = new Bars(this.ranking, (index) => this.show(this.order[index]));
  }

  update(state) {
    this.pairs = [state.pairs ?? []].flat();
    if (this.order.length !== this.pairs.length) this.order = this.pairs.map((_, index) => index);
    this.steps.hidden = !this.pairs.length;
    this.orders.show(state.order ?? "");
    const [first, last] = this.places(state);
    this.place.textContent = first < 0 ? `${this.pairs.length} sentences` : `${first + 1} of ${this.pairs.length}`;
    this.previous.disabled = first === 0;
    this.next.disabled = last >= 0 && last === this.pairs.length - 1;
  }

  /** Show the pairs in an order, from 0. figure: their differences, undefined for the order of the file. */
  rank(order, figure, state) {
    this.order = order;
    this.update(state);
    this.ranking.hidden = figure === undefined;
    if (!figure) return;
    this.note.textContent = `${figure.caption} ${figure.limits}`;
    this.bars.show(figure);
    this.scrollToCurrent();
  }

  /** Scroll the list, and not the page, to the current sentence. */
  scrollToCurrent() {
    const list = this.bars.element;
    const item = list.querySelector(".is-marked")?.getBoundingClientRect();
    if (!item) return;
    const { top, bottom } = list.getBoundingClientRect();
    if (item.top < top) list.scrollTop += item.top - top;
    else if (item.bottom > bottom) list.scrollTop += item.bottom - bottom;
  }

  clear() {
    this.ranking.hidden = true;
  }

  /** Return the first and the last place of the current sentence in the order, −1 if it is not in the file. */
  places({ source = "", reference = "" }) {
    const isCurrent = (index) => this.pairs[index] === `${source}\t${reference}`;
    return [this.order.findIndex(isCurrent), this.order.findLastIndex(isCurrent)];
  }

  move(step) {
    const [first, last] = this.places(this.store.state);
    const place = first < 0 ? 0 : step < 0 ? first - 1 : last + 1;
    this.show(this.order[place]);
    this.announce(this.pairs[this.order[place]].split("\t")[0]);
  }

  /** Show a sentence. index: its number in the file, from 0. */
  show(index) {
    const [source, reference] = this.pairs[index].split("\t");
    this.store.set({ source, reference, target: "" }, true);
  }

  remove() {
    this.store.set({ pairs: [], order: "" }, true);
    this.details.querySelector("summary").focus();
  }

  async read() {
    const [file] = this.file.files;
    if (!file) return;
    const pairs = await this.parse(file).catch((error) => error);
    this.file.value = ""; // so that the same file can be chosen again after a change
    const problem = pairs instanceof Error ? `${file.name} ${pairs.message}` : "";
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    if (problem) return;
    const [source, reference = ""] = pairs[0].split("\t");
    this.order = [];
    this.store.set({ pairs, order: "", source, reference, target: "" }, true);
  }

  /** Return the lines of a file. The server checks them, and their number. Throws an error for a file that cannot be used. */
  async parse(file) {
    const { characters } = this.workspace.limits;
    const tooLarge = new Error(`is too large: an address has at most ${characters.toLocaleString("en")} characters`);
    if (file.size > characters) throw tooLarge;
    let text;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      throw new Error("is not a text file in UTF-8");
    }
    const pairs = text.split(/\r?\n/).filter((line) => line.trim());
    if (String(new URLSearchParams(pairs.map((pair) => ["pairs", pair]))).length > characters) throw tooLarge;
    if (!pairs.length) throw new Error("is empty");
    return pairs;
  }
}
