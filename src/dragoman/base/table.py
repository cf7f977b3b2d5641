"""`Table`: rows of cells, as text for a terminal, Markdown or HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Rows with equal numbers of cells, of which the first is the header.

    right: the index of the first column that is aligned to the right, such as 1 for names followed by numbers; None if
    all columns are aligned to the left.
    """

    rows: Sequence[Sequence[str]]
    right: int | None = None

    def text(self) -> str:
        """Return one line per row, with columns that are padded to the same width."""
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        padded = [
            [
                cell.rjust(width) if self._is_right(column) else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            for row in self.rows
        ]
        return "\n".join("  ".join(row).rstrip() for row in padded)

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

    def _is_right(self, column: int) -> bool:
        return self.right is not None and column >= self.right
