// Rows of buttons with one tab stop, in which the arrow keys move the focus.

/** Let the arrow keys move between buttons. container: their parent. rows: returns the buttons row by row. */
export function connectArrows(container, rows) {
  container.addEventListener("keydown", (event) => {
    const grid = rows();
    const row = grid.findIndex((buttons) => buttons.includes(document.activeElement));
    if (row < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const column = grid[row].indexOf(document.activeElement);
    const inRow = (index) => grid[index]?.[Math.min(column, grid[index].length - 1)];
    const target = {
      ArrowLeft: grid[row][column - 1],
      ArrowRight: grid[row][column + 1],
      ArrowUp: inRow(row - 1),
      ArrowDown: inRow(row + 1),
      Home: grid[row][0],
      End: grid[row].at(-1),
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    setTabStop(grid, target);
    target.focus();
  });
}

/** Make one of the buttons the tab stop. */
export function setTabStop(rows, chosen) {
  for (const button of rows.flat()) button.tabIndex = button === chosen ? 0 : -1;
}
