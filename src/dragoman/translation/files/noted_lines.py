"""`NotedLines`: what had to be done about lines, told at the end by kind, with the numbers of the first."""

from collections import Counter
from collections.abc import Mapping

from dragoman.base.log import warn

_SHOWN = 10


class NotedLines:
    """counts: of all lines so far, by what is told of them; those of an earlier process too, whose numbers are gone."""

    def __init__(self, earlier: Mapping[str, int] | None = None) -> None:
        self.counts = Counter(earlier or {})
        self._window = Counter[str]()
        self._first: dict[str, list[int | str]] = {}

    def window(self) -> Counter[str]:
        """Counts of what is noted from now on, until this is asked for again."""
        self._window = Counter()
        return self._window

    def note(self, what: str, line: int | str) -> None:
        """what: to be read after a number of lines; line: from 1, or its file and number."""
        self.counts[what] += 1
        self._window[what] += 1
        shown = self._first.setdefault(what, [])
        if len(shown) <= _SHOWN:
            shown.append(line)

    def report(self) -> None:
        """Warn of them, if there are any."""
        for what, count in self.counts.items():
            first = self._first.get(what, [])[:_SHOWN]
            more = " …" if count > len(first) else ""
            where = f": line {', '.join(map(str, first))}{more}" if first else ", all before it was gone on with"
            warn(f"{count:,} line(s) {what}{where}")
