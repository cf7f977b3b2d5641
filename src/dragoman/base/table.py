"""`Table`: rows of cells, as text for a terminal, Markdown or HTML."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len

TEXT_WIDTH = 80
"""Number of columns of a terminal that a table as text fits into."""
_GAP = "  "


@dataclass(frozen=True)
class Table:
    """Rows with equal numbers of cells, of which the first is the header.

    right: the index of the first column that is aligned to the right, such as 1 for names followed by numbers; None if
    all columns are aligned to the left. names: the number of first columns that say what a row is about.
    """

    rows: Sequence[Sequence[str]]
    right: int | None = None
    names: int = 1

    def text(self) -> str:
        """Return one line per row, with columns that are padded to the same width.

        If the lines would be wider than `TEXT_WIDTH`, the table is divided into several below one another, all of which
        have the columns of names.
        """
        widths = [max(map(cell_len, column)) for column in zip(*self.rows, strict=True)]
        return "\n\n".join(
            "\n".join(
                _GAP.join(self._pad(row[each], each, widths[each]) for each in chosen).rstrip() for row in self.rows
            )
            for chosen in _blocks(widths, self.names)
        )

    def markdown(self) -> list[str]:
        """Return the lines of a Markdown table."""
        header, *rows = self.rows
        rule = ["---:" if self._is_right(column) else "---" for column in range(len(header))]
        return [
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
            for line in (header, rule, *rows)
        ]

    def html(self) -> str:
        """Return a table element."""
        header, *rows = self.rows
        body = "".join(self._row(row, "td") for row in rows)
        return f"<table><thead>{self._row(header, 'th')}</thead><tbody>{body}</tbody></table>"

    def _row(self, row: Sequence[str], tag: str) -> str:
        # Notebooks have rules for tables, which only the attribute of a cell overrides.
        cells = (
            f'<{tag} style="text-align:{"right" if self._is_right(column) else "left"}">{escape(cell)}</{tag}>'
            for column, cell in enumerate(row)
        )
        return f"<tr>{''.join(cells)}</tr>"

    def _pad(self, cell: str, column: int, width: int) -> str:
        space = " " * (width - cell_len(cell))
        return space + cell if self._is_right(column) else cell + space

    def _is_right(self, column: int) -> bool:
        return self.right is not None and column >= self.right


def _blocks(widths: Sequence[int], names: int) -> Iterator[list[int]]:
    """Yield the columns of each part of a table that fits; every part has the first columns and at least one other."""
    first, start = list(range(names)), sum(widths[:names]) + len(_GAP) * (names - 1)
    block, used = [*first], start
    for column, width in enumerate(widths[names:], names):
        if len(block) > names and used + len(_GAP) + width > TEXT_WIDTH:
            yield block
            block, used = [*first], start
        block.append(column)
        used += len(_GAP) + width
    yield block
