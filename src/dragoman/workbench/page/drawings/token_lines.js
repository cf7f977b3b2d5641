// The weights of a head as lines between two columns of tokens. A token, selected by pointer or keyboard, shows its lines.

import { draw, make, token, visible } from "../dom.js";

/** The height of a token and the width of the space for the lines, in pixels. */
const [HEIGHT, WIDTH] = [26, 200];
/** Lines with smaller weights would be invisible. */
const SMALLEST_WEIGHT = 0.02;

export class TokenLines {
  /** root: the element to fill. announce: makes a screen reader say a message. */
  constructor(root, announce) {
    this.announce = announce;
    this.lines = draw("svg", { class: "lines", "aria-hidden": "true" });
    this.keys = make("div", { class: "line-tokens keys-side", "aria-hidden": "true" });
    this.queries = make("div", { class: "line-tokens", role: "listbox", tabindex: "0", "aria-label": "Tokens that attend" });
    this.queries.addEventListener("keydown", (event) => this.onKeydown(event));
    this.queries.addEventListener("pointerover", ({ target }) => this.light(this.indexOf(target)));
    this.queries.addEventListener("pointerleave", () => this.light(this.selected ?? null));
    this.queries.addEventListener("click", ({ target }) => this.select(this.indexOf(target)));
    this.readout = make("p", { class: "readout small" }, "Point at a token on the right to see what it attends to.");
    root.append(make("div", { class: "map-scroll" }, make("div", { class: "token-lines" }, this.keys, this.lines, this.queries)), this.readout);
  }

  /** Draw a panel (panels.js). rows, columns: the labels of its queries and keys. */
  show(panel, rows, columns) {
    if (rows !== this.rows) this.selected = undefined;
    Object.assign(this, { panel, rows, columns });
    const height = HEIGHT * Math.max(rows.length, columns.length);
    this.lines.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    this.lines.setAttribute("width", WIDTH);
    this.lines.setAttribute("height", height);
    this.keys.replaceChildren(...columns.map((text) => make("div", {}, token(text))));
    this.options = rows.map((text) => make("div", { role: "option", "aria-selected": "false" }, token(text)));
    this.queries.replaceChildren(...this.options);
    this.groups = rows.map((_, row) => draw("g", {}, ...this.linesOf(row)));
    this.lines.replaceChildren(...this.groups);
    this.light(this.selected ?? null);
  }

  linesOf(row) {
    const weights = this.panel.values.subarray(row * this.columns.length, (row + 1) * this.columns.length);
    const lines = [];
    weights.forEach((weight, column) => {
      if (Math.abs(weight) < SMALLEST_WEIGHT) return;
      const [y1, y2] = [HEIGHT * (column + 0.5), HEIGHT * (row + 0.5)];
      lines.push(draw("path", { d: `M0 ${y1}C${WIDTH / 2} ${y1} ${WIDTH / 2} ${y2} ${WIDTH} ${y2}`, "stroke-opacity": Math.min(1, Math.abs(weight)).toFixed(3) }));
    });
    return lines;
  }

  /** Show only the lines of a query; those of all for null. */
  light(row) {
    this.lines.classList.toggle("is-focused", row !== null);
    this.groups.forEach((group, index) => group.classList.toggle("is-lit", index === row));
    this.options.forEach((option, index) => option.classList.toggle("is-lit", index === row));
    const cells = [...this.keys.children];
    for (const [column, cell] of cells.entries()) {
      const weight = row === null ? 0 : Math.abs(this.panel.values[row * this.columns.length + column]);
      cell.classList.toggle("is-lit", weight >= 0.1);
    }
  }

  select(row) {
    if (row === null) return;
    this.selected = row;
    this.options.forEach((option, index) => option.setAttribute("aria-selected", String(index === row)));
    this.light(row);
    const weights = this.panel.values.subarray(row * this.columns.length, (row + 1) * this.columns.length);
    const best = [...weights.entries()].sort(([, one], [, other]) => other - one).slice(0, 3);
    const parts = best.map(([column, weight]) => `${visible(this.columns[column])} ${weight.toFixed(2)}`);
    const text = `${visible(this.rows[row])} → ${parts.join(", ")}`;
    this.readout.replaceChildren(make("bdi", {}, text));
    this.announce(text);
  }

  indexOf(target) {
    const index = this.options.indexOf(target.closest("[role=option]"));
    return index < 0 ? null : index;
  }

  onKeydown(event) {
    const row = this.selected ?? -1;
    const last = this.rows.length - 1;
    const target = { ArrowUp: Math.max(0, row - 1), ArrowDown: Math.min(last, row + 1), Home: 0, End: last }[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.select(target);
    this.options[target].scrollIntoView({ block: "nearest" });
  }

  close() {}
}
