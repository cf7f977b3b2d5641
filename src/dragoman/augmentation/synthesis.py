"""`Synthesis`: generates pairs by translating a text of any length; resumable after a kill."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.augmentation.filters import RULES, FilterConfig, ScoredPair, broken_rule, unusable
from dragoman.base.companion import compressor_for
from dragoman.base.errors import ConfigError
from dragoman.base.journal import OutputJournal, work_folder
from dragoman.base.log import info
from dragoman.base.progress import Progress
from dragoman.checkpoint.folder import fingerprint
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.translation.request import Request
from dragoman.translation.result import Translation
from dragoman.translation.translator import WINDOW_BATCHES, Translator

KEPT, LINES = "kept", "lines"


class Line(NamedTuple):
    """A text to translate. reference: its human translation; empty if it is not needed."""

    text: str
    reference: str = ""

    @property
    def identity(self) -> str:
        """The key for deduplication: lines with the same identity are duplicates."""
        return f"{self.text}\n{self.reference}" if self.reference else self.text


class Synthesis(ABC):
    """Generates pairs from the lines of a text. Subclasses are frozen dataclasses with these fields.

    model: the translator's folder. output: a file of tab-separated pairs; its suffix selects the compression.
    """

    model: Path
    output: Path
    request: Request
    filters: FilterConfig
    batch_size: int

    @abstractmethod
    def read(self) -> Iterator[Line]:
        """Yield the lines to translate."""

    @abstractmethod
    def pair(self, line: Line, translation: str) -> tuple[str, str]:
        """Return the two columns of the output."""

    @property
    @abstractmethod
    def origin(self) -> Path:
        """The input file, for messages."""

    def chosen(self, line: Line, translations: Sequence[Translation]) -> Translation:
        """Return the translation to write; by default the best."""
        return translations[0]

    def count(self) -> int | None:
        """Return the number of lines; None if all of them would have to be read."""
        return None

    @property
    def finished(self) -> bool:
        """Whether the output is complete."""
        return self.output.exists() and not work_folder(self.output).exists()

    @property
    def window(self) -> int:
        """The number of lines between two commits."""
        return WINDOW_BATCHES * self.batch_size

    def settings(self) -> dict[str, Any]:
        """Return everything that the output depends on, except the text, as JSON values."""
        return {
            "model": fingerprint(self.model),
            "request": self.request.settings(),
            "filters": self.filters.model_dump(mode="json"),
            "batch_size": self.batch_size,
        }

    def run(self, translator: Translator, on_window: Callable[[Counter[str]], None] | None = None) -> Counter[str]:
        """Write the pairs in the order of the lines, resuming a killed run; return the number of lines by rule.

        on_window: called with the counts after every window. Memory does not grow with the text: the digests that find
        duplicate lines stay on disk until the end. Raises ConfigError if the killed run had another text or other
        settings, and all errors of reading and translating.
        """
        compress = compressor_for(self.output)
        with (
            OutputJournal(self.output, self.settings()) as journal,
            Progress("Translating", "lines", self.count, done=journal.kept, closes=True) as progress,
        ):
            if self.output.exists() and not journal.finished:
                raise exists(self.output)
            if journal.kept:
                info(f"Resuming after line {journal.kept:,} of {self.origin}.")
            lines = self._remaining(journal)
            while not journal.finished:
                window = list(islice(lines, self.window))
                pairs, counts = self._pairs(window, journal, translator, progress)
                text = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
                last = len(window) < self.window
                # without any compressed member, an empty file would not be valid in its format
                data = compress(text) if text or (last and journal.counts[KEPT] == 0) else b""
                journal.write(len(window), data, counts)
                journal.commit(finished=last)
                if on_window is not None:
                    on_window(journal.counts)
            counts = Counter(journal.counts)
        journal.publish()
        return counts

    def _remaining(self, journal: OutputJournal) -> Iterator[Line]:
        """Yield the lines that have not been processed yet."""
        last = Line("")

        def texts() -> Iterator[str]:
            nonlocal last
            for last in self.read():
                yield last.identity

        for _ in journal.remaining_lines("text", texts(), self.origin):
            yield last

    def _pairs(
        self, window: Sequence[Line], journal: OutputJournal, translator: Translator, progress: Progress
    ) -> tuple[list[tuple[str, str]], Counter[str]]:
        """Return the kept pairs of a window, and the number of lines by rule."""
        counts: Counter[str] = Counter({LINES: len(window)})
        lines = list(self._readable(window, counts))
        if self.filters.duplicates:
            lines = list(self._first_ones(lines, journal, counts))
        lines = list(self._short_enough(lines, counts, translator))
        texts = [line.text for line in lines]
        dropped = len(window) - len(lines)
        progress.update(journal.lines + dropped, kept(journal.counts) if journal.lines else "")
        found = translator.translate_window(texts, self.request, self.batch_size, journal.lines + 1, progress)
        pairs = []
        for line, translations in zip(lines, found, strict=True):
            best = self.chosen(line, translations)
            scored = ScoredPair(line.text, best.text, best.finished, best.log_probability / (len(best.ids) + 1))
            rule = broken_rule(scored, self.filters)
            counts[rule or KEPT] += 1
            if rule is None:
                pairs.append(self.pair(line, best.text))
        return pairs, counts

    def _readable(self, lines: Sequence[Line], counts: Counter[str]) -> Iterator[Line]:
        for line in lines:
            if has_broken_utf8(line.text):
                counts["broken_utf8"] += 1
            elif unusable(line.text):
                counts["control_characters"] += 1
            elif self.filters.empty and not line.text.strip():
                counts["empty"] += 1
            else:
                yield line

    def _first_ones(self, lines: Sequence[Line], journal: OutputJournal, counts: Counter[str]) -> Iterator[Line]:
        for line, new in zip(lines, journal.first_seen(line.identity for line in lines), strict=True):
            if new:
                yield line
            else:
                counts["duplicates"] += 1

    def _short_enough(self, lines: Sequence[Line], counts: Counter[str], translator: Translator) -> Iterator[Line]:
        most = [translator.engine.limits.source.tokens, self.filters.max_tokens]
        limit = min((number - len(self.request.tags) for number in most if number is not None), default=None)
        encoded = translator.tokenizers.source.encode_batch([line.text for line in lines])
        for line, ids in zip(lines, encoded, strict=True):
            if limit is not None and len(ids) > limit:
                counts["max_tokens"] += 1
            else:
                yield line


def exists(output: Path) -> ConfigError:
    """Return the error to raise if the output already exists."""
    return ConfigError(f"{output} already exists: choose another --output, or delete it first")


def kept(counts: Mapping[str, int]) -> str:
    """Return how many lines became pairs."""
    return f"{counts[KEPT]:,} of {counts[LINES]:,} lines kept ({counts[KEPT] / max(1, counts[LINES]):.1%})"


def account(counts: Mapping[str, int]) -> str:
    """Return how many lines became pairs, with one line per rule that dropped some."""
    dropped = (f"  {rule:<18} {counts[rule]:>10,}  {RULES[rule]}" for rule in RULES if counts[rule])
    return "\n".join([kept(counts), *dropped])
