// What a decoder would predict after each layer, as a table of tokens. One tab stop; arrow keys move between the cells.

import { make, token, visible } from "../dom.js";

export class LensTable {
  /** root: the element to fill. onChoose: called with the {layer, position} of a cell, both from 0; layer 0: the embeddings. */
  constructor(root, onChoose) {
    this.onChoose = onChoose;
    this.body = make("tbody");
    this.foot = make("tfoot");
    this.element = make("table", { class: "lens", role: "grid", "aria-label": "Most probable token after each layer" }, this.body, this.foot);
    this.element.addEventListener("keydown", (event) => this.onKeydown(event));
    this.scroll = make("div", { class: "lens-scroll" }, this.element);
    root.append(this.scroll);
  }

  /** Draw a figure of the kind "lens". layer, position: the chosen cell, from 0. */
  show(figure, layer, position) {
    const { layers, columns, tokens, arrays } = figure;
    const hadFocus = this.element.contains(document.activeElement);
    const { data } = arrays.probabilities;
    this.cells = tokens.map((row, at) => row.map((text, column) => this.cell(text, data[at * columns.length + column], { layer: at, position: column, columns, name: layers[at] })));
    const rows = layers.map((name, at) => make("tr", {}, make("th", { scope: "row" }, name), ...this.cells[at]));
    this.body.replaceChildren(...rows.reverse());
    this.foot.replaceChildren(make("tr", {}, make("th", { scope: "row" }, "output"), ...columns.map((text) => make("td", {}, token(text)))));
    const chosen = this.cells[layer][position];
    chosen.setAttribute("aria-selected", "true");
    chosen.tabIndex = 0;
    if (hadFocus) chosen.focus();
    else this.reveal(chosen);
  }

  /** Scroll sideways until a cell is visible. */
  reveal({ offsetLeft, offsetWidth }) {
    const { scrollLeft, clientWidth } = this.scroll;
    if (offsetLeft < scrollLeft || offsetLeft + offsetWidth > scrollLeft + clientWidth) this.scroll.scrollLeft = offsetLeft - clientWidth / 2;
  }

  cell(text, probability, { layer, position, columns, name }) {
    const label = `${name}, position ${position + 1}: ${visible(text)}, probability ${probability.toFixed(3)}${text === columns[position] ? ", as in the output" : ""}`;
    const element = make(
      "td",
      { class: text === columns[position] ? "is-marked" : null, role: "gridcell", tabindex: "-1", "aria-selected": "false", "aria-label": label, title: label, onclick: () => this.onChoose({ layer, position }) },
      token(text, { class: "lens-token" }),
      make("span", { class: "lens-value" }, probability.toFixed(2)),
    );
    element.style.setProperty("--share", probability.toFixed(4));
    return element;
  }

  onKeydown(event) {
    const row = this.cells.findIndex((cells) => cells.includes(document.activeElement));
    if (row < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const column = this.cells[row].indexOf(document.activeElement);
    const last = this.cells[row].length - 1;
    const [layer, position] = {
      ArrowLeft: [row, Math.max(0, column - 1)],
      ArrowRight: [row, Math.min(last, column + 1)],
      ArrowUp: [Math.min(this.cells.length - 1, row + 1), column],
      ArrowDown: [Math.max(0, row - 1), column],
      Home: [row, 0],
      End: [row, last],
      Enter: [row, column],
      " ": [row, column],
    }[event.key] ?? [];
    if (layer === undefined) return;
    event.preventDefault();
    if (event.key === "Enter" || event.key === " ") {
      this.onChoose({ layer, position });
      return;
    }
    for (const cell of this.cells.flat()) cell.tabIndex = -1;
    this.cells[layer][position].tabIndex = 0;
    this.cells[layer][position].focus();
  }
}
