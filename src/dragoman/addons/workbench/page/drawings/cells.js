// Cells of a map of rows and columns, under the pointer and under the arrow keys.

import { make, newId } from "../dom.js";
import { DataTable } from "./table.js";

/**
 * Return the elements of a map with labelled rows and columns. name: the accessible name. picture: the element that draws the
 * cells. `cursor` is the cell that screen readers read, `table` has the values of all cells, and `scroll` contains the map.
 */
export function cellMap(name, picture) {
  const [cell, details] = [newId(), newId()];
  const rowBand = make("div", { class: "band row-band", "aria-hidden": "true", hidden: true });
  const columnBand = make("div", { class: "band column-band", "aria-hidden": "true", hidden: true });
  const cursor = make("div", { role: "gridcell", id: cell, class: "unseen" });
  const grid = make(
    "div",
    { class: "map-cells", role: "grid", tabindex: "0", "aria-label": name, "aria-activedescendant": cell, "aria-details": details },
    picture,
    rowBand,
    columnBand,
    make("div", { role: "row", class: "unseen" }, cursor),
  );
  const rowLabels = make("div", { class: "row-labels", "aria-hidden": "true" });
  const columnLabels = make("div", { class: "column-labels", "aria-hidden": "true" });
  const readout = make("p", { class: "readout small" });
  const scroll = make("div", { class: "map-scroll" }, make("div", { class: "map" }, columnLabels, rowLabels, grid));
  return { grid, rowBand, columnBand, cursor, rowLabels, columnLabels, readout, table: new DataTable(details), scroll };
}

/** Return the {row, column} of a pointer event in an element that consists of `rows` × `columns` cells of the same size. */
export function cellAt(event, element, rows, columns) {
  const box = element.getBoundingClientRect();
  const at = (offset, extent, count) => Math.max(0, Math.min(count - 1, Math.floor((offset / extent) * count)));
  return { row: at(event.clientY - box.top, box.height, rows), column: at(event.clientX - box.left, box.width, columns) };
}

/** Return the {row, column} to which a key moves from a cell, or null for any other key. */
export function cellAfter(event, { row, column }, rows, columns) {
  if (event.metaKey || event.altKey) return null;
  const [lastRow, lastColumn] = [rows - 1, columns - 1];
  const target = {
    ArrowLeft: [row, Math.max(0, column - 1)],
    ArrowRight: [row, Math.min(lastColumn, column + 1)],
    ArrowUp: [Math.max(0, row - 1), column],
    ArrowDown: [Math.min(lastRow, row + 1), column],
    Home: event.ctrlKey ? [0, 0] : [row, 0],
    End: event.ctrlKey ? [lastRow, lastColumn] : [row, lastColumn],
  }[event.key];
  return target ? { row: target[0], column: target[1] } : null;
}
