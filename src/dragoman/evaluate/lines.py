"""The check that comes before every measure: as many hypotheses as references, and at least one."""

from collections.abc import Sequence

from dragoman.base.errors import DataError


def check_lines(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raises DataError that names the counts where they differ, where there are none, or where a reference is blank."""
    if not references:
        raise DataError("there is no reference to compare with; give at least one")
    for number, reference in enumerate(references, 1):
        which = f"reference {number}" if len(references) > 1 else "the reference"
        if len(reference) != len(hypotheses):
            raise DataError(
                f"{len(hypotheses)} hypotheses, but {which} has {len(reference)} lines; both need the same sentences"
            )
    if not hypotheses:
        raise DataError("0 hypotheses and 0 references: there is nothing to compare; give files with at least one line")
    blank = [
        line for line, texts in enumerate(zip(*references, strict=True), 1) if not any(text.strip() for text in texts)
    ]
    if blank:
        shown = ", ".join(map(str, blank[:10])) + (", …" if len(blank) > 10 else "")
        raise DataError(
            f"{len(blank)} of {len(hypotheses)} sentences have an empty reference (lines {shown}); fill or remove them"
        )
