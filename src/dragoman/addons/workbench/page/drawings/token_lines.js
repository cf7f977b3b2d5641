// The weights of a head as lines between two columns of tokens. A token, selected by pointer or keyboard, shows its lines.

import { draw, make, newId, token, visible } from "../dom.js";
import { describeLargest } from "./panels.js";
import { DataTable } from "./table.js";

/** The height of a token, and the width of the coordinates of the lines, which are stretched to the free width. */
const [HEIGHT, WIDTH] = [26, 200];
/** Lines with smaller weights would be invisible. */
const SMALLEST_WEIGHT = 0.02;
/** Tokens with larger weights are highlighted. */
const LARGE_WEIGHT = 0.1;

export class TokenLines {
  /**
   * root: the element to fill. announce: makes a screen reader say a message. onPoint: called with the {row, column} of the
   * token at the pointer, of which one is null, or with null; and with whether it stays when the pointer leaves.
   */
  constructor(root, announce, onPoint) {
    this.announce = announce;
    this.onPoint = onPoint;
    const details = newId();
    this.lines = draw("svg", { class: "lines", "aria-hidden": "true", preserveAspectRatio: "none" });
    this.queries = make("div", { class: "line-tokens queries-side", role: "listbox", tabindex: "0", "aria-label": "Tokens that attend", "aria-details": details });
    this.keys = make("div", { class: "line-tokens", "aria-hidden": "true" });
    this.queries.addEventListener("keydown", (event) => this.onKeydown(event));
    this.queries.addEventListener("click", ({ target }) => this.select(this.indexIn(this.queries, target)));
    for (const [side, box] of [["row", this.queries], ["column", this.keys]]) {
      box.addEventListener("pointerover", ({ target }) => {
        const index = this.indexIn(box, target);
        this.onPoint(index === null ? null : { row: null, column: null, [side]: index }, false);
      });
      box.addEventListener("pointerleave", () => this.onPoint(null, false));
    }
    this.readout = make("p", { class: "readout small" });
    this.table = new DataTable(details);
    root.append(make("div", { class: "token-lines" }, this.queries, this.lines, this.keys), this.readout, this.table.element);
  }

  /** Draw a panel (panels.js). rows, columns: the labels of its queries and keys. */
  show(panel, rows, columns) {
    Object.assign(this, { panel, rows, columns });
    const height = HEIGHT * Math.max(rows.length, columns.length);
    this.lines.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    this.lines.style.height = `${height}px`;
    this.keys.replaceChildren(...columns.map((text) => make("div", { title: visible(text) }, token(text))));
    this.options = rows.map((text) => make("div", { role: "option", "aria-selected": "false", title: visible(text) }, token(text)));
    this.queries.replaceChildren(...this.options);
    this.paths = [];
    panel.values.forEach((weight, index) => {
      if (Math.abs(weight) >= SMALLEST_WEIGHT) this.paths.push(this.line(Math.floor(index / columns.length), index % columns.length, weight));
    });
    this.lines.replaceChildren(...this.paths.map(({ path }) => path));
    this.table.show(["row", "column", "value"], panel.values.length, (index) => [rows[Math.floor(index / columns.length)], columns[index % columns.length], panel.values[index].toFixed(4)]);
    this.light(null);
  }

  line(row, column, weight) {
    const [y1, y2] = [HEIGHT * (row + 0.5), HEIGHT * (column + 0.5)];
    const path = draw("path", { d: `M0 ${y1}C${WIDTH / 2} ${y1} ${WIDTH / 2} ${y2} ${WIDTH} ${y2}`, "stroke-opacity": Math.min(1, Math.abs(weight)).toFixed(3) });
    return { row, column, path };
  }

  /** Show only the lines of a query, of a key, or between both; all lines for null. */
  light(at) {
    const { row = null, column = null } = at ?? {};
    const isLit = (line) => at !== null && (row === null || line.row === row) && (column === null || line.column === column);
    const weight = (query, key) => Math.abs(this.panel.values[query * this.columns.length + key]);
    this.row = row;
    this.lines.classList.toggle("is-focused", at !== null);
    for (const line of this.paths) line.path.classList.toggle("is-lit", isLit(line));
    this.options.forEach((option, query) => {
      option.classList.toggle("is-lit", query === row || (row === null && column !== null && weight(query, column) >= LARGE_WEIGHT));
      option.setAttribute("aria-selected", String(query === row));
    });
    [...this.keys.children].forEach((cell, key) => {
      cell.classList.toggle("is-lit", key === column || (column === null && row !== null && weight(row, key) >= LARGE_WEIGHT));
    });
    this.readout.replaceChildren(at ? make("bdi", {}, this.describe(at)) : "Point at a token to see its lines.");
  }

  describe({ row, column }) {
    if (row === null || column === null) return describeLargest(this.panel.values, { row, column }, this.rows, this.columns);
    return `${visible(this.rows[row])} → ${visible(this.columns[column])}: ${this.panel.values[row * this.columns.length + column].toFixed(4)}`;
  }

  /** Highlight a query, also when the pointer leaves, and announce its weights. */
  select(row) {
    if (row === null) return;
    this.onPoint({ row, column: null }, true);
    this.announce(this.describe({ row, column: null }));
  }

  indexIn(box, target) {
    const index = [...box.children].findIndex((each) => each.contains(target));
    return index < 0 ? null : index;
  }

  onKeydown(event) {
    const row = this.row ?? -1;
    const last = this.rows.length - 1;
    const target = { ArrowUp: Math.max(0, row - 1), ArrowDown: Math.min(last, row + 1), Home: 0, End: last }[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.select(target);
    this.options[target].scrollIntoView({ block: "nearest" });
  }

  close() {}
}
