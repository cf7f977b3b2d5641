// Labelled bars. If they can be chosen, each is a button; one tab stop, and arrow keys move between them.

import { make, token } from "../dom.js";
import { connectArrows, setTabStop } from "../roving.js";

/** The number of decimal places of the values. */
const DIGITS = 3;

export class Bars {
  /** root: the element to fill. onChoose: called with the index of a bar; undefined for bars that cannot be chosen. */
  constructor(root, onChoose) {
    this.onChoose = onChoose;
    this.element = make("ul", { class: "bars" });
    this.buttons = [];
    connectArrows(this.element, () => this.buttons.map((button) => [button]));
    root.append(this.element);
  }

  /** Draw a figure of the kind "bars". canChoose: tells for the index of a bar whether it can be chosen. */
  show(figure, canChoose = () => true) {
    const values = [...figure.arrays.values.data];
    const rest = figure.rest === null ? [] : [figure.rest];
    const extent = [...values, ...rest].reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    const focused = this.buttons.indexOf(document.activeElement);
    const rows = values.map((value, index) => this.row(figure.labels[index], value, extent, figure.marked.includes(index), this.onChoose && canChoose(index) ? index : null));
    const others = rest.map((value) => this.row("all others", value, extent, false, null, true));
    this.element.replaceChildren(...rows, ...others);
    this.buttons = [...this.element.querySelectorAll("button")];
    setTabStop([this.buttons], this.buttons[Math.max(0, Math.min(focused, this.buttons.length - 1))]);
    if (focused >= 0) this.buttons[Math.min(focused, this.buttons.length - 1)]?.focus();
  }

  /** index: that of a bar that can be chosen, or null. isRest: whether the bar is the sum of all others. */
  row(label, value, extent, isMarked, index, isRest = false) {
    const bar = make("span", { class: value < 0 ? "bar is-negative" : "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", (Math.abs(value) / extent).toFixed(4));
    const parts = [
      isRest ? make("span", { class: "bar-label muted" }, label) : token(label, { class: "bar-label" }),
      make("span", { class: "bar-track", "aria-hidden": "true" }, bar),
      make("span", { class: "bar-value" }, value.toFixed(DIGITS).replace("-", "−")),
      make("span", { class: "bar-mark small muted" }, isMarked ? "in the output" : ""),
    ];
    const content = index !== null ? make("button", { type: "button", onclick: () => this.onChoose(index) }, ...parts) : make("div", {}, ...parts);
    return make("li", { class: isMarked ? "is-marked" : null }, content);
  }
}
