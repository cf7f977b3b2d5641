"""The check that comes before every measure: as many hypotheses as references, and at least one."""

from collections.abc import Sequence

from dragoman.base.errors import DataError


def check_lines(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raises DataError naming the counts where they differ, where there are none, or where all references are empty.

    A blank reference among others is no error: corpora hold blank lines, and what is written for one counts as wrong.
    """
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
    if not any(text.strip() for reference in references for text in reference):
        raise DataError(f"all {len(hypotheses)} references are empty: there is nothing to compare with; check the file")
