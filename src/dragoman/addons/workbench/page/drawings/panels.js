// The panels of a figure of the kind "heat-maps".

import { visible } from "../dom.js";

/** Return the panels row by row, as {heading, name, layer, head, values, rows, columns}. values: (rows · columns). */
export function panels(figure) {
  return figure.grid.map((row) =>
    row.map(({ heading, layer, head, array, index }) => {
      const { shape, data } = figure.arrays[array];
      const [, rows, columns] = shape;
      const size = rows * columns;
      const name = head === null ? (heading.match(/mean|rollout/)?.[0] ?? "") : String(head);
      return { heading, name, layer, head, rows, columns, values: data.subarray(index * size, (index + 1) * size) };
    }),
  );
}

/** Return the mean entropy of the rows of a panel, in bits. */
export function entropy({ values, rows, columns }) {
  let sum = 0;
  for (const value of values) if (value > 0) sum -= value * Math.log2(value);
  return columns && rows ? sum / rows : 0;
}

/** Return the mean of the values of panels of the same shape. */
export function meanOf(list) {
  const mean = new Float32Array(list[0].values.length);
  for (const { values } of list) for (let index = 0; index < mean.length; index += 1) mean[index] += values[index];
  return mean.map((value) => value / list.length);
}

/** Return the values of a row or a column. values: of a matrix. at: {row, column}, of which one is null. */
export function valuesAt(values, { row, column }, rows, columns) {
  if (column === null) return values.subarray(row * columns, (row + 1) * columns);
  return Float32Array.from({ length: rows }, (_, index) => values[index * columns + column]);
}

/** Describe the largest values of a row or a column, such as "Hund → dog 0.93, a 0.04". rows, columns: the labels. */
export function describeLargest(values, at, rows, columns) {
  const labels = at.column === null ? columns : rows;
  const largest = [...valuesAt(values, at, rows.length, columns.length).entries()].sort(([, one], [, other]) => other - one).slice(0, 3);
  const parts = largest.map(([index, value]) => `${visible(labels[index])} ${value.toFixed(2).replace("-", "−")}`).join(", ");
  return at.column === null ? `${visible(rows[at.row])} → ${parts}` : `${visible(columns[at.column])} ← ${parts}`;
}
