// All heads of all layers as small heat maps, one of which is selected. One tab stop; arrow keys select another head.

import { make } from "../dom.js";
import { onThemeChange, paint, scale } from "./colours.js";
import { entropy } from "./panels.js";

export class HeadGrid {
  /** root: the element to fill. onSelect: called with the {layer, head} that the user selected; head 0 is the mean. */
  constructor(root, onSelect) {
    this.onSelect = onSelect;
    this.element = make("div", { class: "head-grid", role: "grid", "aria-label": "Heads" });
    this.element.addEventListener("keydown", (event) => this.onKeydown(event));
    root.append(this.element);
    this.stop = onThemeChange(() => this.paint());
  }

  /** Draw rows of panels (panels.js). limit: the value at the end of the colour scale. order: layer or entropy. */
  show(rows, limit, order) {
    this.limit = limit;
    const sorted = order === "entropy" ? byEntropy(rows) : rows;
    this.rows = sorted.map((row, index) => {
      const cells = row.map((panel) => this.cell(panel, order === "entropy" ? `${panel.layer ?? 1}.${panel.name}` : panel.name));
      const name = order === "entropy" ? `Heads ${index * sorted[0].length + 1} to ${index * sorted[0].length + row.length}` : `Layer ${row[0].layer ?? 1}`;
      const label = order === "entropy" ? `${index * sorted[0].length + 1} …` : name;
      const element = make("div", { class: "head-row", role: "row" }, make("span", { class: "head-label small muted", role: "rowheader", "aria-label": name }, label), ...cells.map(({ element: cell }) => cell));
      return { element, cells };
    });
    this.element.replaceChildren(...this.rows.map(({ element }) => element));
    this.element.style.setProperty("--heads", Math.max(...rows.map((row) => row.length)));
    const [{ rows: height, columns: width }] = rows[0];
    for (const [property, value] of [["--aspect", width / height], ["--rows", height], ["--columns", width]]) this.element.style.setProperty(property, value);
    this.paint();
  }

  /** name: below the map. In the order of entropy, it is the layer and the head, such as 2.1. */
  cell(panel, name) {
    const canvas = make("canvas", { "aria-hidden": "true" });
    const label = `${panel.heading}: entropy ${entropy(panel).toFixed(2)} bits`;
    const element = make(
      "div",
      { class: "head", role: "gridcell", tabindex: "-1", "aria-label": label, title: label, onclick: () => this.onSelect(panel) },
      make("div", { class: "head-map" }, canvas),
      make("span", { class: "head-name", "aria-hidden": "true" }, name),
    );
    return { element, canvas, panel };
  }

  /** Mark the selected head. head 0 is the mean. */
  select(layer, head) {
    this.current = [0, 0];
    this.rows.forEach(({ cells }, row) =>
      cells.forEach(({ element, panel }, column) => {
        const isSelected = (panel.layer ?? 1) === layer && ((panel.head ?? 0) === head || (cells.length === 1 && head <= 1));
        element.setAttribute("aria-selected", String(isSelected));
        element.tabIndex = -1;
        if (isSelected) this.current = [row, column];
      }),
    );
    this.cellAt(...this.current).element.tabIndex = 0;
  }

  /** Mark a row, a column, or both in all heat maps; nothing for null. */
  mark(at) {
    for (const side of ["row", "column"]) {
      this.element.classList.toggle(`marks-${side}`, (at?.[side] ?? null) !== null);
      this.element.style.setProperty(`--${side}`, at?.[side] ?? 0);
    }
  }

  close() {
    this.stop();
  }

  paint() {
    const colours = scale();
    for (const { cells } of this.rows ?? []) {
      for (const { canvas, panel } of cells) paint(canvas, panel.values, panel.rows, panel.columns, this.limit, colours);
    }
  }

  cellAt(row, column) {
    return this.rows[row].cells[Math.min(column, this.rows[row].cells.length - 1)];
  }

  onKeydown(event) {
    const [row, column] = this.current;
    const last = this.rows[row].cells.length - 1;
    const target = {
      ArrowLeft: [row, Math.max(0, column - 1)],
      ArrowRight: [row, Math.min(last, column + 1)],
      ArrowUp: [Math.max(0, row - 1), column],
      ArrowDown: [Math.min(this.rows.length - 1, row + 1), column],
      Home: [row, 0],
      End: [row, last],
    }[event.key];
    if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.onSelect(this.cellAt(...target).panel);
    this.cellAt(...this.current).element.focus();
  }
}

/** Return the single heads with rising entropy, in rows of the same length as those of the layers. */
function byEntropy(rows) {
  const heads = rows.flat().filter(({ head }) => head !== null);
  const length = Math.max(...rows.map((row) => row.length));
  const sorted = heads.map((panel) => [entropy(panel), panel]).sort(([one], [other]) => one - other).map(([, panel]) => panel);
  return Array.from({ length: Math.ceil(sorted.length / length) }, (_, row) => sorted.slice(row * length, (row + 1) * length));
}
