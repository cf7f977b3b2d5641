// The tokens of the rows and columns of heat maps. A token, selected by pointer or keyboard, shows the weights of its row or
// column as bars under the other tokens. Each row of tokens is one tab stop; arrow keys move between its tokens.

import { make, newId, token } from "../dom.js";
import { describeLargest, valuesAt } from "./panels.js";

export class TokenRows {
  /**
   * root: the element to fill. names: the names of the rows and of the columns. announce: makes a screen reader say a
   * message. onPoint: called with the {row, column} at the pointer, of which one is null, or with null; and with whether it
   * stays when the pointer leaves.
   */
  constructor(root, names, announce, onPoint) {
    this.announce = announce;
    this.onPoint = onPoint;
    this.lists = ["row", "column"].map((side, index) => this.list(side, names[index]));
    this.readout = make("p", { class: "readout small" });
    root.append(...this.lists.map(({ element }) => element), this.readout);
  }

  list(side, name) {
    const box = make("div", { class: "token-row", role: "listbox", tabindex: "0", "aria-label": name, "aria-orientation": "horizontal" });
    const list = { side, box, options: [], element: make("div", { class: "now" }, make("span", { class: "output-name small muted", "aria-hidden": "true" }, name), box) };
    const at = (target) => this.at(side, list.options.indexOf(target.closest("[role=option]")));
    box.addEventListener("pointerover", ({ target }) => this.onPoint(at(target), false));
    box.addEventListener("pointerleave", () => this.onPoint(null, false));
    box.addEventListener("click", ({ target }) => at(target) && this.select(at(target)));
    box.addEventListener("focus", () => box.matches(":focus-visible") && this.select(this.at(side, Math.max(0, this.indexIn(list)))));
    box.addEventListener("keydown", (event) => this.onKeydown(event, list));
    return list;
  }

  /** Show tokens. values: the (rows · columns) weights to show. note: what they are. rows, columns: the labels. */
  show(values, note, rows, columns) {
    Object.assign(this, { values, note, rows, columns });
    for (const [index, labels] of [rows, columns].entries()) {
      const list = this.lists[index];
      const isSame = labels.length === list.labels?.length && labels.every((text, at) => text === list.labels[at]);
      if (isSame) continue;
      list.labels = labels;
      list.options = labels.map((text) => make("span", { class: "token word-token", role: "option", id: newId(), "aria-selected": "false" }, token(text)));
      list.box.replaceChildren(...list.options);
    }
    this.light(null);
  }

  /** Highlight the token of a row, of a column, or both; nothing for null. */
  light(at) {
    this.current = at;
    for (const { side, box, options } of this.lists) {
      const lit = at?.[side] ?? null;
      options.forEach((option, index) => option.setAttribute("aria-selected", String(index === lit)));
      if (lit === null) box.removeAttribute("aria-activedescendant");
      else box.setAttribute("aria-activedescendant", options[lit].id);
    }
    const shown = at && (at.row === null ? { row: null, column: at.column } : { row: at.row, column: null });
    this.shade(this.lists[0], shown?.row === null ? shown : null);
    this.shade(this.lists[1], shown?.column === null ? shown : null);
    this.readout.replaceChildren(shown ? make("bdi", {}, this.describe(shown)) : "Point at a token, or move with the arrow keys, to see its row or column.");
  }

  /** Show the weights at a row or column under the tokens of the other side; none for null. */
  shade({ options }, at) {
    const weights = at && valuesAt(this.values, at, this.rows.length, this.columns.length);
    const largest = weights?.reduce((most, weight) => Math.max(most, weight), 0) || 1;
    options.forEach((option, index) => option.style.setProperty("--share", weights ? Math.max(0, weights[index] / largest).toFixed(4) : "0"));
  }

  describe(at) {
    return `${describeLargest(this.values, at, this.rows, this.columns)} (${this.note})`;
  }

  /** Highlight a token, also when the pointer leaves, and announce its weights. */
  select(at) {
    this.onPoint(at, true);
    this.announce(this.describe(at));
  }

  at(side, index) {
    if (index < 0) return null;
    return side === "row" ? { row: index, column: null } : { row: null, column: index };
  }

  indexIn({ side }) {
    return this.current?.[side] ?? -1;
  }

  onKeydown(event, list) {
    const [index, last] = [this.indexIn(list), list.options.length - 1];
    const target = { ArrowLeft: Math.max(0, index - 1), ArrowRight: Math.min(last, index + 1), Home: 0, End: last, Escape: -1 }[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (target < 0) this.onPoint(null, true);
    else this.select(this.at(list.side, target));
  }
}
