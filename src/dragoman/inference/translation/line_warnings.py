"""`LineWarnings`: counts problems in lines, and reports each kind at the end with its first line numbers."""

from collections import Counter
from collections.abc import Mapping

from dragoman.base.log import warn
from dragoman.data.lengths import CorpusLengths, Verdict
from dragoman.inference.translation.result import LinePart, Translation
from dragoman.models.interface import LengthLimit
from dragoman.text.sentences.division import count_letters

_SHOWN = 10
_SHORT_TEXT, _SHORT_RATIO = 200, 0.4
"""Texts with more letters are checked for translations whose length is less than this part of theirs."""


class LineWarnings:
    """Collects warnings about lines. counts: number of lines per kind, including lines of an earlier process, whose
    numbers are unknown.
    """

    def __init__(self, earlier: Mapping[str, int] | None = None, compares_lengths: bool = True) -> None:
        """compares_lengths: whether to warn of outputs that are much shorter or longer than their text."""
        self.compares_lengths = compares_lengths
        self.counts = Counter(earlier or {})
        self._window = Counter[str]()
        self._first: dict[str, list[int | str]] = {}

    def window(self) -> Counter[str]:
        """Return new counts, which `note` updates until the next call."""
        self._window = Counter()
        return self._window

    def note(self, what: str, line: int | str) -> None:
        """Count a line. what: the problem, as the end of a sentence that starts with "N line(s)"; line: the line
        number, from 1, or the file and line number.
        """
        self.counts[what] += 1
        self._window[what] += 1
        shown = self._first.setdefault(what, [])
        if len(shown) <= _SHOWN:
            shown.append(line)

    def note_translation(
        self, line: int, text: str, best: Translation, limit: LengthLimit, lengths: CorpusLengths | None = None
    ) -> None:
        """Count a line whose translation is unfinished, unproven, patched, too short or too long.

        text: the line; best: its translation; limit: the length limit of targets. lengths: the lengths of the model's
        training pairs; None if they are unknown, so that only translations of long texts are checked.
        """
        if not best.finished:
            reached = "the length limit"
            if limit.positions is not None and len(best.ids) >= limit.positions:
                reached = f"the model's maximum of {limit.positions} target tokens ({limit.setting})"
            self.note(f"have unfinished translations that reached {reached}", line)
        if best.bound is not None and best.bound > best.score:
            self.note("have translations that exact search has not proved to be the best (raise search.exact)", line)
        if best.patched:
            self.note("have translations that were assembled from terms or parts to meet the constraints", line)
        if best.forced_whole:
            self.note(
                "of several sentences were translated as a whole, because their prefix, required phrases or search "
                "tree belong to the line",
                line,
            )
        if not self.compares_lengths:
            return
        parts = [part for part in best.parts if not part.is_copied] or [LinePart(text, best.text)]
        verdicts = {_judge(part.source, part.translation, lengths) for part in parts}
        if "short" in verdicts:
            self.note("have translations that are much shorter than the text, so that parts may be missing", line)
        if "long" in verdicts:
            self.note("have translations that are much longer than the text, so that parts may be invented", line)

    def note_guard(self, line: int, best: Translation) -> None:
        """Count each kind of fault that a guard found in a line's translations, as repaired or not repaired."""
        if best.guarded is not None:
            for what, repaired in best.guarded.outcomes().items():
                outcome = "repaired by another search" if repaired else "not repaired by any other search"
                self.note(f"{what}: {outcome}", line)

    def report(self) -> None:
        """Log one warning per kind."""
        for what, count in self.counts.items():
            first = self._first.get(what, [])[:_SHOWN]
            more = " …" if count > len(first) else ""
            where = f": line {', '.join(map(str, first))}{more}" if first else ", all before the command was resumed"
            warn(f"{count:,} line(s) {what}{where}")


def _judge(text: str, translation: str, lengths: CorpusLengths | None) -> Verdict | None:
    if lengths is not None:
        return lengths.judge(text, translation)
    return "short" if _is_short(text, translation) else None


def _is_short(text: str, translation: str) -> bool:
    if 3 * len(text) < _SHORT_TEXT:
        return False
    length = count_letters(text)
    return length >= _SHORT_TEXT and count_letters(translation) < _SHORT_RATIO * length
