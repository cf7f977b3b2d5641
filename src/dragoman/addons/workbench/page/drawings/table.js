// The numbers of a figure as a table, in pages.

import { make, token } from "../dom.js";

/** The number of rows on a page. */
const ROWS = 25;

export class DataTable {
  /** id: the id of the element, for aria-details. */
  constructor(id) {
    this.first = 0;
    this.body = make("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the figure" });
    this.range = make("span", { class: "small muted", role: "status" });
    this.previous = make("button", { type: "button", class: "plain", onclick: () => this.move(-ROWS) }, "Previous");
    this.next = make("button", { type: "button", class: "plain", onclick: () => this.move(ROWS) }, "Next");
    const pages = make("div", { class: "pages" }, this.previous, this.range, this.next);
    this.element = make("details", { class: "numbers", id }, make("summary", {}, "Numbers as a table"), this.body, pages);
    this.element.addEventListener("toggle", () => this.draw());
  }

  /** Show a table. columns: their names. count: the number of rows. row: returns the values of the row at an index. */
  show(columns, count, row) {
    Object.assign(this, { columns, count, row });
    this.first = Math.min(this.first, Math.max(0, count - 1) - (Math.max(0, count - 1) % ROWS));
    this.draw();
  }

  move(step) {
    this.first += step;
    this.draw();
  }

  draw() {
    if (!this.element.open || !this.columns) return;
    const last = Math.min(this.count, this.first + ROWS);
    const rows = Array.from({ length: last - this.first }, (_, index) =>
      make("tr", {}, ...this.row(this.first + index).map((value) => make("td", {}, token(String(value))))),
    );
    const head = make("tr", {}, ...this.columns.map((name) => make("th", { scope: "col" }, name)));
    this.body.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
    this.range.textContent = `${this.count ? this.first + 1 : 0} to ${last} of ${this.count.toLocaleString("en")}`;
    this.previous.disabled = this.first === 0;
    this.next.disabled = last === this.count;
  }
}
