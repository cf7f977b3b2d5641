// The links between the words of a sentence (rows) and of its translation (columns), a mark per layer in each linked cell.
// One tab stop; arrow keys move between the cells, which are read out.

import { draw, make, token, visible } from "../dom.js";
import { cellAfter, cellAt, cellMap } from "./cells.js";
import { goldCell, linkMark } from "./link_marks.js";

/** The size of a cell in pixels. */
const [SMALLEST, LARGEST] = [20, 38];
/** The size of a cell in units of the drawing. */
const UNIT = 40;
export const GOLD = "gold";

export class LinkGrid {
  /**
   * root: the element to fill. announce: makes a screen reader say a message. onSelect: called with the {row, column} that
   * is selected, or null. onEnter: called with the selected cell when Enter is pressed.
   */
  constructor(root, announce, onSelect, onEnter) {
    Object.assign(this, { announce, onSelect, onEnter });
    this.svg = draw("svg", { class: "links", "aria-hidden": "true" });
    Object.assign(this, cellMap("Links between the words", this.svg));
    root.append(this.scroll, this.readout);
    this.grid.addEventListener("pointermove", (event) => this.point(this.cellAt(event), false));
    this.grid.addEventListener("pointerleave", () => this.point(this.position, false));
    this.grid.addEventListener("pointerdown", (event) => this.select(this.cellAt(event), false));
    this.grid.addEventListener("keydown", (event) => this.onKeydown(event));
    this.grid.addEventListener("focus", () => this.grid.matches(":focus-visible") && this.select(this.position ?? { row: 0, column: 0 }, true));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.scroll);
  }

  /** Draw a figure of the kind "alignments". off: the names of the layers that are not drawn. */
  show(figure, off) {
    const words = JSON.stringify([figure.source, figure.target]);
    if (words !== this.words) {
      this.position = null;
      this.rowLabels.replaceChildren(...figure.source.map((word) => make("div", {}, token(word))));
      this.columnLabels.replaceChildren(...figure.target.map((word) => make("div", {}, token(word))));
    }
    Object.assign(this, { figure, words });
    this.layers = figure.aligners.map(({ name, array, weights }, number) => ({
      name,
      number,
      links: new Set(pairs(figure.arrays[array]).map(String)),
      weights: weights && figure.arrays[weights].data,
    }));
    this.gold = figure.arrays.sure && { sure: new Set(pairs(figure.arrays.sure).map(String)), possible: new Set(pairs(figure.arrays.possible).map(String)) };
    this.update(off);
  }

  /** Draw the same links with other layers. */
  update(off) {
    this.shown = this.layers.filter(({ name }) => !off.includes(name));
    this.isGoldShown = Boolean(this.gold) && !off.includes(GOLD);
    const [rows, columns] = [this.figure.source.length, this.figure.target.length];
    this.svg.setAttribute("viewBox", `0 0 ${columns * UNIT} ${rows * UNIT}`);
    const lines = [
      ...Array.from({ length: rows - 1 }, (_, row) => draw("line", { class: "grid-line", x1: 0, x2: columns * UNIT, y1: (row + 1) * UNIT, y2: (row + 1) * UNIT })),
      ...Array.from({ length: columns - 1 }, (_, column) => draw("line", { class: "grid-line", x1: (column + 1) * UNIT, x2: (column + 1) * UNIT, y1: 0, y2: rows * UNIT })),
    ];
    const gold = this.isGoldShown ? pairs(this.figure.arrays.possible).map(([row, column]) => goldCell(this.gold.sure.has(`${row},${column}`), column * UNIT, row * UNIT, UNIT)) : [];
    const marks = this.shown.flatMap(({ number, links }) =>
      [...links].map((link) => {
        const [row, column] = link.split(",").map(Number);
        return linkMark(number, this.layers.length, (column + 0.5) * UNIT, (row + 0.5) * UNIT, UNIT);
      }),
    );
    this.svg.replaceChildren(...gold, ...lines, ...marks);
    this.showTable();
    this.resize();
    this.point(this.position, false);
    this.onSelect(this.position);
  }

  /** List the links of all layers that are shown. */
  showTable() {
    const rows = this.shown.flatMap((layer) => [...layer.links].map((link) => [layer, ...link.split(",").map(Number)]));
    const columns = ["layer", "source", "target", "weight", ...(this.gold ? ["annotation"] : [])];
    this.table.show(columns, rows.length, (index) => {
      const [layer, row, column] = rows[index];
      const weight = this.weight(layer, row, column);
      return [layer.name, this.figure.source[row], this.figure.target[column], weight === null ? "none" : weight.toFixed(4), ...(this.gold ? [this.annotation(row, column)] : [])];
    });
  }

  /** Return the weight of a possible link, or null for a layer without weights. */
  weight({ weights }, row, column) {
    return weights ? weights[row * this.figure.target.length + column] : null;
  }

  /** Return the annotation of a cell: sure, possible or none. */
  annotation(row, column) {
    const link = `${row},${column}`;
    if (this.gold?.sure.has(link)) return "sure";
    return this.gold?.possible.has(link) ? "possible" : "none";
  }

  /** Choose the size of the cells so that they fit into the column, unless they would be too small to point at. */
  resize() {
    if (!this.figure || !this.scroll.clientWidth) return;
    const { style } = this.scroll.firstElementChild;
    const free = this.scroll.clientWidth - this.rowLabels.offsetWidth - 16;
    const size = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(free / this.figure.target.length)));
    for (const [name, value] of [["cell", `${size}px`], ["cell-height", `${size}px`], ["rows", this.figure.source.length], ["columns", this.figure.target.length]]) {
      style.setProperty(`--${name}`, value);
    }
  }

  close() {
    this.observer.disconnect();
  }

  /** Keep a cell highlighted. isSpoken: whether it is announced. */
  select(position, isSpoken) {
    this.position = position;
    this.point(position, isSpoken);
    this.onSelect(position);
  }

  /** Highlight a cell and describe it, or nothing for null. */
  point(position, isSpoken) {
    for (const element of this.lit ?? []) element.classList.remove("is-lit");
    this.rowBand.hidden = this.columnBand.hidden = !position;
    if (!position) {
      this.lit = [];
      this.readout.textContent = "Point at a cell, or move with the arrow keys, to read its links and their weights.";
      return;
    }
    const { row, column } = position;
    this.rowBand.style.setProperty("--at", row);
    this.columnBand.style.setProperty("--at", column);
    this.lit = [this.rowLabels.children[row], this.columnLabels.children[column]];
    for (const element of this.lit) element.classList.add("is-lit");
    const text = this.describe(row, column);
    this.readout.replaceChildren(token(this.figure.source[row]), " → ", token(this.figure.target[column]), `: ${text}`);
    this.cursor.textContent = `${visible(this.figure.source[row])} → ${visible(this.figure.target[column])}: ${text}`;
    if (isSpoken) this.announce(this.cursor.textContent);
  }

  /** Return the layers that link a cell, and the others, with their weights, and its annotation. */
  describe(row, column) {
    const named = (layers) =>
      layers.map((layer) => [layer.name, this.weight(layer, row, column)?.toFixed(2)].filter(Boolean).join(" ")).join(", ");
    const linked = this.shown.filter(({ links }) => links.has(`${row},${column}`));
    const others = this.shown.filter((layer) => !linked.includes(layer));
    const parts = [];
    if (linked.length) parts.push(`linked by ${named(linked)}`);
    if (others.length) parts.push(`not linked: ${named(others)}`);
    if (this.isGoldShown) parts.push({ sure: "annotated as sure", possible: "annotated as possible", none: "not annotated" }[this.annotation(row, column)]);
    return parts.join("; ") || "no layer is shown";
  }

  cellAt(event) {
    return cellAt(event, this.grid, this.figure.source.length, this.figure.target.length);
  }

  onKeydown(event) {
    if (!this.figure) return;
    if (event.key === "Enter" && this.position) {
      event.preventDefault();
      this.onEnter(this.position);
      return;
    }
    const target = cellAfter(event, this.position ?? { row: 0, column: 0 }, this.figure.source.length, this.figure.target.length);
    if (target === null) return;
    event.preventDefault();
    this.select(target, true);
  }
}

/** Return the [source, target] pairs of an array (N, 2). */
export function pairs({ data }) {
  return Array.from({ length: data.length / 2 }, (_, index) => [data[2 * index], data[2 * index + 1]]);
}
