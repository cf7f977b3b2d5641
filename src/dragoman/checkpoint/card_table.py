"""`table`: a Markdown table of a model card."""

from typing import Any


def table(header: tuple[str, ...], rows: Any) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    ]
