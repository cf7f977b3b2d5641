"""`TestSet`: references and sources, and warnings about sets whose scores say little."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.base.log import warn
from dragoman.metrics.metric import warn_of_blank_references
from dragoman.text.words import count_words

_FEW_EXAMPLES = 100
"""Number of examples below which p-values are unreliable."""
_LONG_LINE = 300
"""Number of words above which a line is probably a whole paragraph or document."""


@dataclass(frozen=True)
class TestSet:
    """A test set in memory. names: of the references. references: one or more lists of lines. sources: if known."""

    __test__ = False  # not a class of tests, in spite of its name

    names: Sequence[str]
    references: Sequence[Sequence[str]]
    sources: Sequence[str] | None = None

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.references[0])

    def warn_of_references(self, translations: Sequence[Sequence[str]]) -> None:
        """Warn about blank references of sentences that have a source or a translation, and about very long ones."""
        inputs = [*translations, *([] if self.sources is None else [self.sources])]
        for name, lines in zip(self.names, self.references, strict=True):
            warn_of_blank_references(name, lines, inputs, len(self.references) == 1)
            counts = [count_words(line) if len(line) > _LONG_LINE else 0 for line in lines]
            long = sum(count > _LONG_LINE for count in counts)
            if long:
                longest = max(range(len(counts)), key=counts.__getitem__)
                warn(
                    f"{long:,} of {len(lines):,} lines of {name} have more than {_LONG_LINE} words (line "
                    f"{longest + 1:,}: {counts[longest]:,}). The metrics compare single sentences: in long lines, "
                    "words of different sentences match each other"
                )


def warn_of_size(size: int, unit: str = "sentences") -> None:
    """Warn if a test set is too small to compare systems. size: the number of examples. unit: their name."""
    if size < _FEW_EXAMPLES:
        warn(f"the test set has only {size:,} {unit}: p-values from fewer than {_FEW_EXAMPLES} {unit} are unreliable")
