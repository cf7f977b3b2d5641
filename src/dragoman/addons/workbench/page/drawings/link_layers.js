// The layers of links as a table: a switch for each, and its error rate.

import { draw, make } from "../dom.js";
import { GOLD } from "./link_grid.js";
import { goldCell, linkMark } from "./link_marks.js";

const METRICS = [["aer", "AER"], ["precision", "Precision"], ["recall", "Recall"]];
/** The size of a swatch in pixels. */
const SIZE = 22;

export class LinkLayers {
  /** root: the element to fill. onSwitch: called with the names of the layers that are off. */
  constructor(root, onSwitch) {
    this.onSwitch = onSwitch;
    this.head = make("thead");
    this.body = make("tbody");
    root.append(make("div", { class: "table-scroll link-layers", role: "region", tabindex: "0", "aria-label": "Layers of links" }, make("table", {}, this.head, this.body)));
  }

  /** Show a figure of the kind "alignments". off: the names of the layers that are not drawn. */
  show(figure, off) {
    this.boxes = new Map();
    const layers = figure.aligners.length;
    const { sure, possible } = figure.arrays;
    const metrics = sure ? METRICS : [];
    const names = ["Layer", "Links", ...metrics.map(([, title]) => title)];
    this.head.replaceChildren(make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name))));
    const rows = figure.aligners.map((aligner, number) => {
      const values = [figure.arrays[aligner.array].shape[0], ...metrics.map(([name]) => `${aligner[name].toFixed(1)}%`)];
      return this.row(aligner.name, linkMark(number, layers, SIZE / 2, SIZE / 2, SIZE), values);
    });
    if (sure) {
      const count = `${sure.shape[0]} sure, ${possible.shape[0] - sure.shape[0]} only possible`;
      rows.push(this.row(GOLD, goldCell(true, 0, 0, SIZE), [count], names.length - 1));
    }
    this.body.replaceChildren(...rows);
    this.update(off);
  }

  row(name, mark, values, span = 1) {
    const box = make("input", { type: "checkbox", onchange: () => this.onSwitch([...this.boxes].filter(([, each]) => !each.checked).map(([each]) => each)) });
    this.boxes.set(name, box);
    const swatch = draw("svg", { class: "link-swatch", viewBox: `0 0 ${SIZE} ${SIZE}`, "aria-hidden": "true" }, mark);
    const label = make("label", { class: "check" }, box, swatch, make("bdi", {}, name === GOLD ? "annotated links" : name));
    return make("tr", {}, make("th", { scope: "row" }, label), ...values.map((value) => make("td", { colspan: span > 1 ? span : null }, value)));
  }

  /** Check the boxes of the layers that are shown. */
  update(off) {
    for (const [name, box] of this.boxes) box.checked = !off.includes(name);
  }
}
