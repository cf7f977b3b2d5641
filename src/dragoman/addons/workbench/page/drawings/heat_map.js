// A heat map with labelled rows and columns. One tab stop; arrow keys move between the cells, whose values are announced.

import { make, token, visible } from "../dom.js";
import { cellAfter, cellAt, cellMap } from "./cells.js";
import { onThemeChange, paint, scale } from "./colours.js";
import { describeLargest } from "./panels.js";

/** The size of a cell in pixels. */
const [SMALLEST, LARGEST] = [9, 30];
/** The height that the rows of a matrix share, and the height and width that a numbered label needs, in pixels. */
const [MATRIX_HEIGHT, LABEL_HEIGHT, LABEL_WIDTH] = [440, 15, 32];

export class HeatMap {
  /**
   * root: the element to fill. name: the accessible name. announce: makes a screen reader say a message. onPoint: called with
   * the {row, column} at the pointer, or null; and with whether the cell was chosen by a key or a click.
   */
  constructor(root, name, announce, onPoint = () => {}) {
    this.announce = announce;
    this.onPoint = onPoint;
    this.canvas = make("canvas", { class: "cells", "aria-hidden": "true" });
    Object.assign(this, cellMap(name, this.canvas));
    root.append(this.scroll, this.readout, this.table.element);
    this.grid.addEventListener("pointermove", (event) => this.point(this.cellAt(event), false));
    this.grid.addEventListener("pointerleave", () => this.point(this.position, false));
    this.grid.addEventListener("pointerdown", (event) => {
      this.position = this.cellAt(event);
      this.onPoint(this.position, true);
    });
    this.grid.addEventListener("keydown", (event) => this.onKeydown(event));
    this.grid.addEventListener("focus", () => this.grid.matches(":focus-visible") && this.point(this.position ?? { row: 0, column: 0 }, true));
    this.stop = onThemeChange(() => this.paint());
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.scroll);
  }

  /**
   * Draw a panel (panels.js). rows, columns: the labels. limit: the value at the end of the colour scale. axes: the names of
   * the rows and columns of a matrix, whose labels are numbers. It is shown as a whole, and only some labels are visible.
   */
  show(panel, rows, columns, limit, { isSigned = false, axes = null, digits = 4 } = {}) {
    const isOther = rows.length !== this.rows?.length || columns.length !== this.columns?.length || rows.some((text, row) => text !== this.rows[row]) || columns.some((text, column) => text !== this.columns[column]);
    Object.assign(this, { panel, rows, columns, limit, isSigned, axes, digits });
    if (isOther) {
      this.position = undefined;
      this.rowLabels.replaceChildren(...rows.map((text) => make("div", {}, token(text))));
      this.columnLabels.replaceChildren(...columns.map((text) => make("div", {}, token(text))));
    }
    this.resize();
    this.paint();
    this.table.show([...(axes ?? ["row", "column"]), "value"], rows.length * columns.length, (index) => {
      const [row, column] = [Math.floor(index / columns.length), index % columns.length];
      return [rows[row], columns[column], this.panel.values[index].toFixed(digits)];
    });
    this.point(this.position ?? null, false, true);
  }

  /** Choose the size of the cells so that the map fits into its column, unless they would be too small to point at. */
  resize() {
    if (!this.panel || !this.scroll.clientWidth) return;
    const { style } = this.scroll.firstElementChild;
    const free = this.scroll.clientWidth - this.rowLabels.offsetWidth - 16;
    const size = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(free / this.columns.length)));
    style.setProperty("--cell", `${size}px`);
    style.setProperty("--cell-height", `${size}px`);
    if (this.axes) {
      const width = Math.max(1, Math.min(LARGEST, free / this.columns.length));
      const height = Math.max(2, Math.min(LARGEST, MATRIX_HEIGHT / this.rows.length));
      style.setProperty("--cell", `${width}px`);
      style.setProperty("--cell-height", `${height}px`);
      thin(this.rowLabels, LABEL_HEIGHT / height);
      thin(this.columnLabels, LABEL_WIDTH / width);
    }
    this.scroll.firstElementChild.classList.toggle("is-matrix", this.axes !== null);
    style.setProperty("--rows", this.rows.length);
    style.setProperty("--columns", this.columns.length);
  }

  close() {
    this.stop();
    this.observer.disconnect();
  }

  paint() {
    if (!this.panel) return;
    const { values, rows, columns } = this.panel;
    paint(this.canvas, values, rows, columns, this.limit, scale(this.isSigned), this.isSigned);
  }

  /** Highlight a cell, or nothing for null. isSpoken: whether its value is announced. isSilent: whether to keep it to itself. */
  point(position, isSpoken, isSilent = false) {
    this.light(position ?? null);
    if (isSpoken) this.announce(this.cursor.textContent);
    if (!isSilent) this.onPoint(position ?? null, isSpoken);
  }

  /** Forget the cell that was chosen by a key or a click. */
  release() {
    this.position = undefined;
  }

  /** Highlight a row, a column, or the cell of both; nothing for null. */
  light(at) {
    const { row = null, column = null } = at ?? {};
    for (const element of this.lit ?? []) element.classList.remove("is-lit");
    this.lit = [row === null ? null : this.rowLabels.children[row], column === null ? null : this.columnLabels.children[column]].filter(Boolean);
    for (const element of this.lit) element.classList.add("is-lit");
    for (const [band, index] of [[this.rowBand, row], [this.columnBand, column]]) {
      band.hidden = index === null;
      band.style.setProperty("--at", index ?? 0);
    }
    if (row !== null && column !== null) this.read(row, column);
    else if (at) this.readout.replaceChildren(make("bdi", {}, describeLargest(this.panel.values, { row, column }, this.rows, this.columns)));
    else this.readout.textContent = "Point at a cell, or move with the arrow keys, to read its value.";
  }

  /** Show the value of a cell. */
  read(row, column) {
    const value = this.panel.values[row * this.columns.length + column];
    const number = value.toFixed(this.digits).replace("-", "−");
    const place = this.axes ? [`${this.axes[0]} = ${this.rows[row]}, ${this.axes[1]} = ${this.columns[column]}`] : [token(this.rows[row]), " → ", token(this.columns[column])];
    this.readout.replaceChildren(...place, `: ${number}`);
    this.cursor.textContent = this.axes ? this.readout.textContent : `${visible(this.rows[row])} → ${visible(this.columns[column])}: ${value.toFixed(2)}`;
  }

  cellAt(event) {
    return cellAt(event, this.grid, this.rows.length, this.columns.length);
  }

  onKeydown(event) {
    const target = cellAfter(event, this.position ?? { row: 0, column: 0 }, this.rows.length, this.columns.length);
    if (target === null) return;
    event.preventDefault();
    this.position = target;
    this.point(this.position, true);
  }
}

/** Hide labels of rows or columns that would overlap. smallest: the smallest distance of two labels in cells. */
function thin(labels, smallest) {
  const distance = [1, 2, 5, 10, 20, 50, 100, 200].find((each) => each >= smallest);
  [...labels.children].forEach((label, index) => label.classList.toggle("is-hidden", index % distance !== 0));
}
