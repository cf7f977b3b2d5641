// A matrix of counts as a table. The shade of a cell is its fraction of the row.

import { make } from "../dom.js";

export class Confusion {
  /** root: the element to fill. name: the accessible name. */
  constructor(root, name) {
    this.head = make("thead");
    this.body = make("tbody");
    root.append(make("div", { class: "table-scroll confusion", role: "region", tabindex: "0", "aria-label": name }, make("table", {}, this.head, this.body)));
  }

  /** Draw a figure of the kind "confusion". */
  show(figure) {
    const { data, shape } = figure.arrays.counts;
    const corner = make("th", { scope: "col" }, figure.axes[0]);
    this.head.replaceChildren(make("tr", {}, corner, ...figure.columns.map((name) => make("th", { scope: "col" }, make("bdi", {}, name)))));
    const rows = figure.rows.map((name, row) => {
      const counts = Array.from(data.subarray(row * shape[1], (row + 1) * shape[1]), Number);
      const total = counts.reduce((sum, count) => sum + count, 0) || 1;
      return make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, name)), ...counts.map((count) => cell(count, count / total)));
    });
    this.body.replaceChildren(...rows);
  }
}

function cell(count, share) {
  const element = make("td", {}, count.toLocaleString("en"));
  element.style.setProperty("--share", share.toFixed(3));
  return element;
}
