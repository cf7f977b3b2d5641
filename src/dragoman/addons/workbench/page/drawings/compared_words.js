// Two translations beside their source, with lines between linked words. One tab stop; arrow keys move between words.

import { draw, make, newId, token, visible } from "../dom.js";
import { DataTable } from "./table.js";

/** The height of a word in pixels, as in drawings.css, and the width of the drawing between two columns, which is stretched. */
const [HEIGHT, WIDTH] = [28, 96];
/** The column of the source. The others are those of the translations. */
const SOURCE = 1;

export class ComparedWords {
  /** root: the element to fill. announce: makes a screen reader say a message. */
  constructor(root, announce) {
    this.announce = announce;
    const [option, details] = [newId(), newId()];
    this.option = make("div", { role: "option", id: option, class: "unseen", "aria-selected": "true" });
    this.columns = make("div", { class: "compared-words", "aria-hidden": "true" });
    this.box = make(
      "div",
      { class: "compared map-scroll", role: "listbox", tabindex: "0", "aria-label": "Words of the translations and of the source", "aria-activedescendant": option, "aria-details": details },
      this.columns,
      this.option,
    );
    this.readout = make("p", { class: "readout small" });
    this.table = new DataTable(details);
    root.append(this.box, this.readout, this.table.element);
    this.box.addEventListener("keydown", (event) => this.onKeydown(event));
    this.box.addEventListener("focus", () => this.box.matches(":focus-visible") && this.select(this.selected ?? [0, 0], true));
    this.columns.addEventListener("pointerover", ({ target }) => this.light(this.placeOf(target) ?? this.selected));
    this.columns.addEventListener("pointerleave", () => this.light(this.selected));
    this.columns.addEventListener("click", ({ target }) => this.placeOf(target) && this.select(this.placeOf(target), false));
  }

  /** Draw a figure of the kind "comparison". */
  show(figure) {
    this.names = [figure.names[0], "source", figure.names[1]];
    this.texts = [figure.translations[0], figure.source, figure.translations[1]];
    this.links = [0, 1].map((side) => linksOf(figure.arrays[`links-${side}`].data));
    this.different = [0, 1].map((side) => wordsOf(figure.arrays.differences.data, 2 * side));
    this.selected = undefined;
    const rows = Math.max(...this.texts.map(({ length }) => length));
    this.columns.style.setProperty("--rows", rows);
    this.cells = this.texts.map((words, column) => words.map((word, index) => make("div", { class: this.isDifferent(column, index) ? "is-different" : null }, token(word))));
    this.lines = [0, 1].map((side) => this.links[side].map(([source, target]) => line(side, source, target)));
    const drawings = this.lines.map((lines) => draw("svg", { class: "word-links", viewBox: `0 0 ${WIDTH} ${HEIGHT * rows}`, preserveAspectRatio: "none" }, ...lines));
    const columns = this.cells.map((cells, column) => make("div", { class: "compared-column" }, make("p", { class: "small muted" }, make("bdi", { title: this.names[column] }, this.names[column])), ...cells));
    this.columns.replaceChildren(columns[0], drawings[0], columns[1], drawings[1], columns[2]);
    const places = [0, 2].flatMap((column) => this.texts[column].map((_, index) => [column, index]));
    this.table.show(["model", "position", "word", "differs", "source words"], places.length, (index) => this.row(...places[index]));
    this.light(undefined);
    this.option.textContent = "no word is selected";
  }

  row(column, index) {
    const linked = this.linked([column, index])[SOURCE].map((source) => this.texts[SOURCE][source]);
    return [this.names[column], index + 1, this.texts[column][index], this.isDifferent(column, index) ? "yes" : "no", linked.join(" ") || "–"];
  }

  isDifferent(column, index) {
    return column !== SOURCE && this.different[column / 2].has(index);
  }

  /** Return the words that are linked to a word, through the source, for each column. */
  linked([column, index]) {
    const sources = column === SOURCE ? [index] : this.links[column / 2].filter(([, target]) => target === index).map(([source]) => source);
    const targets = (side) => [...new Set(this.links[side].filter(([source]) => sources.includes(source)).map(([, target]) => target))];
    const all = [targets(0), sources, targets(1)];
    if (column !== SOURCE) all[column] = [index];
    return all;
  }

  /** Highlight a word and those linked to it; undefined for none. */
  light(place) {
    const lit = place ? this.linked(place) : [[], [], []];
    this.cells.forEach((cells, column) => cells.forEach((cell, index) => cell.classList.toggle("is-lit", lit[column].includes(index))));
    this.columns.classList.toggle("is-focused", place !== undefined);
    this.lines.forEach((lines, side) => lines.forEach((path, index) => {
      const [source, target] = this.links[side][index];
      path.classList.toggle("is-lit", lit[SOURCE].includes(source) && lit[2 * side].includes(target));
    }));
    this.readout.replaceChildren(place ? make("bdi", {}, this.describe(place)) : "Point at a word, or move with the arrow keys, to see the words that are linked to it.");
  }

  select(place, isSpoken) {
    const [column, index] = place;
    if (!this.texts[column].length) return;
    this.selected = place;
    this.light(place);
    this.option.textContent = this.describe(place);
    if (!isSpoken) return;
    this.announce(this.option.textContent);
    this.cells[column][index].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  describe(place) {
    const [column, index] = place;
    const linked = this.linked(place);
    const text = (other) => linked[other].map((word) => visible(this.texts[other][word])).join(", ") || "no linked word";
    const parts = [0, 1, 2].filter((other) => other !== column).map((other) => `${this.names[other]}: ${text(other)}`);
    return `${visible(this.texts[column][index])} (${this.names[column]}${this.isDifferent(column, index) ? ", differs" : ""}); ${parts.join("; ")}`;
  }

  placeOf(target) {
    const cell = target.closest(".compared-column > div");
    const column = this.cells.findIndex((cells) => cells.includes(cell));
    return column < 0 ? undefined : [column, this.cells[column].indexOf(cell)];
  }

  onKeydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.texts) return;
    const [column, index] = this.selected ?? [0, 0];
    const last = this.texts[column].length - 1;
    const beside = (step) => {
      const next = Math.max(0, Math.min(2, column + step));
      return [next, this.linked([column, index])[next][0] ?? Math.min(index, this.texts[next].length - 1)];
    };
    const target = {
      ArrowUp: [column, Math.max(0, index - 1)],
      ArrowDown: [column, Math.min(last, index + 1)],
      ArrowLeft: beside(-1),
      ArrowRight: beside(1),
      Home: [column, 0],
      End: [column, last],
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.select(target, true);
  }
}

/** side: 0 for the translation on the left of the source, 1 for that on its right. */
function line(side, source, target) {
  const [left, right] = (side ? [source, target] : [target, source]).map((word) => HEIGHT * (word + 0.5));
  return draw("path", { class: `colour-${side}`, d: `M0 ${left}C${WIDTH / 2} ${left} ${WIDTH / 2} ${right} ${WIDTH} ${right}` });
}

/** Return an array (N, 2) as pairs. */
function linksOf(data) {
  return Array.from({ length: data.length / 2 }, (_, row) => [data[2 * row], data[2 * row + 1]]);
}

/** Return the words of an array of differences (D, 4) whose ranges start in a column. */
function wordsOf(data, column) {
  const words = new Set();
  for (let row = 0; row < data.length; row += 4) {
    for (let word = data[row + column]; word < data[row + column + 1]; word += 1) words.add(word);
  }
  return words;
}
