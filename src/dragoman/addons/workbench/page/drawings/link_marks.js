// The marks of links. Each layer has a shape, a size and a colour, the same as in the pictures of Python.

import { draw } from "../dom.js";

const COLOURS = 6;
/** The diameter of the mark of the first layer in cells. Later marks are smaller, so that all marks in a cell are visible. */
const LARGEST = 0.82;
/** The outlines of the shapes around the origin, for a radius r. */
const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0 ${-1.2 * r}L${1.2 * r} 0L0 ${1.2 * r}L${-1.2 * r} 0z`,
  (r) => `M0 ${-r}L${r} ${r}L${-r} ${r}z`,
  (r) => `M0 ${r}L${r} ${-r}L${-r} ${-r}z`,
  (r) => `M${-r / 3} ${-r}h${r / 1.5}v${r / 1.5}h${r / 1.5}v${r / 1.5}h${-r / 1.5}v${r / 1.5}h${-r / 1.5}v${-r / 1.5}h${-r / 1.5}v${-r / 1.5}h${r / 1.5}z`,
];

/** Return the mark of a layer in a cell. number: of the layer, from 0. layers: their count. size: of the cell. */
export function linkMark(number, layers, x, y, size) {
  const radius = (size * LARGEST * (1 - number / (layers + 1))) / 2;
  const name = number === layers - 1 ? "link-mark is-filled" : "link-mark";
  const mark = draw("path", { class: name, d: SHAPES[number % SHAPES.length](radius), transform: `translate(${x} ${y})` });
  mark.style.setProperty("--colour", `var(--curve-${number % COLOURS})`);
  return mark;
}

/** Return the background of a cell with an annotated link. */
export function goldCell(isSure, x, y, size) {
  return draw("rect", { class: isSure ? "gold-cell is-sure" : "gold-cell", x: x + 1, y: y + 1, width: size - 2, height: size - 2 });
}
