"""`Cache`: what was translated before."""

from collections import OrderedDict
from threading import Lock

from dragoman.serving.queue.ticket import Found
from dragoman.translation.lines import Line
from dragoman.translation.request import Sampling


class Cache:
    """The lines that were asked for last, with their hypotheses. Safe between threads."""

    def __init__(self, entries: int) -> None:
        """entries: lines at most; 0: none is kept."""
        self._entries = entries
        self._lines: OrderedDict[Line, Found] = OrderedDict()
        self._lock = Lock()
        self.hits = 0

    def find(self, line: Line) -> Found | None:
        """Its hypotheses, if they are known."""
        if not self._entries or not _is_kept(line):
            return None
        with self._lock:
            found = self._lines.get(line)
            if found is None:
                return None
            self.hits += 1
            self._lines.move_to_end(line)
            return found

    def keep(self, line: Line, found: Found) -> None:
        """In place of the line that was not asked for the longest time."""
        if not self._entries or not _is_kept(line):
            return
        with self._lock:
            self._lines[line] = found
            self._lines.move_to_end(line)
            while len(self._lines) > self._entries:
                self._lines.popitem(last=False)


def _is_kept(line: Line) -> bool:
    """A glossary is an object of its request, so lines that have one are never alike; what is drawn should differ."""
    _, request = line
    if isinstance(request.decoding, Sampling):
        return False
    return request.control is None or request.control.glossary is None
