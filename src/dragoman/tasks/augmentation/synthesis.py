"""`Synthesis`: generates pairs by translating a text of any length. An interrupted run can be resumed."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.base.companion import compressor_for
from dragoman.base.errors import ConfigError
from dragoman.base.journal import OutputJournal, work_folder
from dragoman.base.log import info
from dragoman.base.progress import Progress
from dragoman.checkpoint.folder import fingerprint
from dragoman.data.files.lines import has_broken_utf8
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import WINDOW_BATCHES
from dragoman.tasks.augmentation.filters import RULES, FilterConfig, ScoredPair, broken_rule, has_control_characters

KEPT, LINES = "kept", "lines"


class Line(NamedTuple):
    """A text to translate. reference: its human translation, or an empty string if no reference is needed."""

    text: str
    reference: str = ""

    @property
    def identity(self) -> str:
        """Key for deduplication: lines with equal keys are duplicates."""
        return f"{self.text}\n{self.reference}" if self.reference else self.text


class Synthesis(ABC):
    """Generates pairs from the lines of a text. Subclasses are frozen dataclasses with the fields below.

    model: folder of the translation model. output: file of tab-separated pairs, whose suffix selects the compression.
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
        """Return the source and the target of the pair."""

    @property
    @abstractmethod
    def origin(self) -> Path:
        """Input file, for messages."""

    def select_translation(self, line: Line, translations: Sequence[Translation]) -> Translation:
        """Return the translation to write; by default, the most probable one."""
        return translations[0]

    def count(self) -> int | None:
        """Return the number of lines, or None if counting would require reading them all."""
        return None

    @property
    def is_finished(self) -> bool:
        """True if the output is complete."""
        return self.output.exists() and not work_folder(self.output).exists()

    @property
    def window(self) -> int:
        """Number of lines between two commits."""
        return WINDOW_BATCHES * self.batch_size

    def settings(self) -> dict[str, Any]:
        """Return all settings that affect the output, as JSON values."""
        return {
            "model": fingerprint(self.model),
            "request": self.request.settings(),
            "filters": self.filters.model_dump(mode="json"),
            "batch_size": self.batch_size,
        }

    def run(self, translator: SupportsLines, on_window: Callable[[Counter[str]], None] | None = None) -> Counter[str]:
        """Write the pairs in the order of their lines, resuming an interrupted run, and return the counts by rule.

        on_window: called with the counts after each window. Memory does not grow with the text, because the digests for
        deduplication are stored on disk. Raises ConfigError if the interrupted run had a different text or different
        settings, and all errors of reading and translating.
        """
        compress = compressor_for(self.output)
        with (
            OutputJournal(self.output, self.settings()) as journal,
            Progress("Translating", "lines", self.count, done=journal.committed, closes=True) as progress,
        ):
            if self.output.exists() and not journal.finished:
                raise output_exists(self.output)
            if journal.committed:
                info(f"Resuming after line {journal.committed:,} of {self.origin}.")
            lines = self._remaining_lines(journal)
            while not journal.finished:
                window = list(islice(lines, self.window))
                pairs, counts = self._pairs(window, journal, translator, progress)
                text = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
                is_last = len(window) < self.window
                # A compressed file without any member is invalid, so an empty output needs an empty member.
                data = compress(text) if text or (is_last and journal.counts[KEPT] == 0) else b""
                journal.write(len(window), data, counts)
                journal.commit(finished=is_last)
                if on_window is not None:
                    on_window(journal.counts)
            counts = Counter(journal.counts)
        journal.publish()
        return counts

    def _remaining_lines(self, journal: OutputJournal) -> Iterator[Line]:
        """Yield the lines that have not been processed yet."""
        current = Line("")

        def identities() -> Iterator[str]:
            nonlocal current
            for current in self.read():
                yield current.identity

        for _ in journal.remaining_lines("text", identities(), self.origin):
            yield current

    def _pairs(
        self, window: Sequence[Line], journal: OutputJournal, translator: SupportsLines, progress: Progress
    ) -> tuple[list[tuple[str, str]], Counter[str]]:
        """Return the kept pairs of a window, and the counts by rule."""
        counts: Counter[str] = Counter({LINES: len(window)})
        lines = list(self._drop_unusable(window, counts))
        if self.filters.duplicates:
            lines = list(self._drop_duplicates(lines, journal, counts))
        lines = list(self._drop_long(lines, counts, translator))
        texts = [line.text for line in lines]
        translator.training_texts.check_language(texts)
        dropped = len(window) - len(lines)
        progress.update(journal.lines + dropped, format_kept(journal.counts) if journal.lines else "")
        hypotheses = translator.translate_window(
            texts, self.request, self.batch_size, first=journal.lines + 1, progress=progress
        )
        lengths = translator.training_texts.lengths(self.request.tags)
        pairs = []
        for line, translations in zip(lines, hypotheses, strict=True):
            best = self.select_translation(line, translations)
            scored = ScoredPair(line.text, best.text, best.finished, best.log_probability / (len(best.ids) + 1))
            rule = broken_rule(scored, self.filters, lengths)
            counts[rule or KEPT] += 1
            if rule is None:
                pairs.append(self.pair(line, best.text))
        return pairs, counts

    def _drop_unusable(self, lines: Sequence[Line], counts: Counter[str]) -> Iterator[Line]:
        for line in lines:
            if has_broken_utf8(line.text):
                counts["broken_utf8"] += 1
            elif has_control_characters(line.text):
                counts["control_characters"] += 1
            elif self.filters.empty and not line.text.strip():
                counts["empty"] += 1
            else:
                yield line

    def _drop_duplicates(self, lines: Sequence[Line], journal: OutputJournal, counts: Counter[str]) -> Iterator[Line]:
        for line, is_first in zip(lines, journal.first_occurrences(line.identity for line in lines), strict=True):
            if is_first:
                yield line
            else:
                counts["duplicates"] += 1

    def _drop_long(self, lines: Sequence[Line], counts: Counter[str], translator: SupportsLines) -> Iterator[Line]:
        limits = [translator.engine.limits.source.tokens, self.filters.max_tokens]
        limit = min((tokens - len(self.request.tags) for tokens in limits if tokens is not None), default=None)
        encoded = translator.tokenizers.source.encode_batch([line.text for line in lines])
        for line, ids in zip(lines, encoded, strict=True):
            if limit is not None and len(ids) > limit:
                counts["max_tokens"] += 1
            else:
                yield line


def output_exists(output: Path) -> ConfigError:
    """Return the error to raise if the output already exists."""
    return ConfigError(f"{output} already exists: choose another --output, or delete it first")


def format_kept(counts: Mapping[str, int]) -> str:
    """Format the number of lines whose pairs were kept."""
    return f"{counts[KEPT]:,} of {counts[LINES]:,} lines kept ({counts[KEPT] / max(1, counts[LINES]):.1%})"


def format_counts(counts: Mapping[str, int]) -> str:
    """Format the number of lines whose pairs were kept, followed by a line per rule that dropped pairs."""
    dropped = (f"  {rule:<18} {counts[rule]:>10,}  {RULES[rule]}" for rule in RULES if counts[rule])
    return "\n".join([format_kept(counts), *dropped])
