// The panels of a figure of the kind "heat-maps".

/** Return the panels row by row, as {heading, layer, head, values, rows, columns}. values: (rows · columns). */
export function panels(figure) {
  return figure.grid.map((row) =>
    row.map(({ heading, layer, head, array, index }) => {
      const { shape, data } = figure.arrays[array];
      const [, rows, columns] = shape;
      const size = rows * columns;
      return { heading, layer, head, rows, columns, values: data.subarray(index * size, (index + 1) * size) };
    }),
  );
}

/** Return the mean entropy of the rows of a panel, in bits. */
export function entropy({ values, rows, columns }) {
  let sum = 0;
  for (const value of values) if (value > 0) sum -= value * Math.log2(value);
  return columns && rows ? sum / rows : 0;
}
