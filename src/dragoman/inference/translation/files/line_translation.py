"""`LineTranslation`: translates the lines of a file and formats the output."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from dragoman.base.companion import Companion
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.progress import Progress
from dragoman.checkpoint.folder import fingerprint
from dragoman.data.corpora.inputs import one_line, read_any_lines, read_lines, windows
from dragoman.data.files.lines import count_lines
from dragoman.decode.rules.fusion import FusionConfig
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.control.control import Control
from dragoman.inference.control.phrase import read_phrases
from dragoman.inference.translation.alignment import Aligner, align_each
from dragoman.inference.translation.files.faulty_lines import FaultyLines, OnError
from dragoman.inference.translation.files.trees import TreeFile
from dragoman.inference.translation.line_warnings import LineWarnings
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Choice, LinePart, Translation
from dragoman.statistical.alignment.links import Alignment, format_pharaoh
from dragoman.text.symbols import EOS

_CONTENTS = {
    "prefix": "must contain the start of translation n, or be blank",
    "constraints": "must contain the phrases required in translation n, or be blank",
}


class Destination(Protocol):
    """Receives the translations of lines."""

    @property
    def lines(self) -> int:
        """Number of completed input lines."""
        ...

    @property
    def is_visible(self) -> bool:
        """True if the user sees the translations as they are written, so that no progress is displayed."""
        ...

    def remaining_lines(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
        """Yield the lines of an input that are not completed. name: of the input. path: its file, None for stdin."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of completed lines by warning."""
        ...

    def write(self, lines: int, texts: Iterable[bytes], counts: Mapping[str, int]) -> None:
        """Write the output of the next lines.

        lines: number of lines. counts: number of these lines by warning; updated while `texts` is consumed.
        """
        ...


@dataclass(frozen=True)
class AlignmentWriter:
    """Writes alignments to a companion file of the translations."""

    aligner: Aligner
    batch_size: int

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the alignment file, as JSON values."""
        return {"written": True, **self.aligner.settings()}

    def check(self) -> None:
        """Raise ConfigError, before a line is read, if the model does not support alignment."""
        self.aligner.align(["a"], ["a"], 1)

    def write_after(
        self,
        texts: Iterable[bytes],
        lines: Sequence[Sequence[LinePart]],
        first: int,
        warnings: LineWarnings,
        companion: Companion,
    ) -> Iterator[bytes]:
        """Yield `texts`, then write the alignment of each line to the companion, such as `0-0 1-2`.

        lines: the parts of each line; may still grow while `texts` is consumed. first: the number of the first line. A
        line that cannot be aligned gets a blank line and a warning.
        """
        yield from texts
        sentences = [part for line in lines for part in line if not part.is_copied]
        sources, targets = [part.source for part in sentences], [part.translation for part in sentences]
        results = iter(align_each(self.aligner, sources, targets, self.batch_size))
        alignments = [
            _join_alignments(line, [_identity(part) if part.is_copied else next(results) for part in line])
            for line in lines
        ]
        for index, alignment in enumerate(alignments):
            if alignment is None:
                warnings.note("are too long to be aligned: their alignments are blank", first + index)
        companion.write("".join(f"{format_pharaoh(each or ())}\n" for each in alignments))


@dataclass(frozen=True)
class LineTranslation:
    """Translates the lines of a file.

    source: the input file, None for stdin. prefix: a file with the start of each translation. nbest: number of
    hypotheses written per line. scores: write the log-probability before the text. token_scores: write the tokens and
    their log-probabilities after the text. trees: receives the search trees. choice: orders the hypotheses before they
    are written. constraints: a file with the phrases that each translation must contain. alignments: writes the
    alignment of the best hypothesis. on_error: as in `FaultyLines`.
    """

    translator: SupportsLines
    request: Request
    source: Path | None
    prefix: Path | None
    batch_size: int
    nbest: int = 1
    scores: bool = False
    token_scores: bool = False
    trees: TreeFile | None = None
    choice: Choice | None = None
    constraints: Path | None = None
    alignments: AlignmentWriter | None = None
    on_error: OnError = "stop"

    @property
    def inputs(self) -> list[Path | None]:
        """All files that are read line by line."""
        return [self.source, *self._parallel_files.values()]

    @property
    def _parallel_files(self) -> dict[str, Path]:
        """The files that are read in parallel with the source, by name."""
        paths = {"prefix": self.prefix, "constraints": self.constraints}
        return {name: path for name, path in paths.items() if path is not None}

    def settings(self) -> dict[str, Any]:
        """Return all settings that determine the output, apart from the inputs, as JSON values."""
        engine = self.translator.engine
        dictionary: Path | None = getattr(getattr(self.request.decoding, "unknown", None), "path", None)
        fusion: FusionConfig | None = getattr(self.request.decoding, "fusion", None)
        shortlist = self.translator.codec.shortlist if getattr(self.request.decoding, "shortlist", False) else None
        return {
            **self.request.settings(),
            "engine": type(getattr(engine, "preferred", engine)).__name__,
            "dictionary": dictionary and blake2b(dictionary.read_bytes(), digest_size=8).hexdigest(),
            "language_model": fusion and fingerprint(fusion.language_model),
            "shortlist": shortlist and shortlist.fingerprint,
            "prefix": self.prefix is not None,
            "constraints": self.constraints is not None,
            "scores": self.scores,
            "choice": self.choice and self.choice.settings(),
            "alignments": None if self.alignments is None else self.alignments.settings(),
            "on_error": self.on_error,
        }

    def progress(self, out: Destination) -> Progress:
        """Return the progress display, which is hidden if lines are typed or the translations are visible."""

        def count() -> int | None:
            return count_lines(self.source) if self.source is not None and self.source.is_file() else None

        is_typed = self.source is None and sys.stdin.isatty()
        shown = not (is_typed or out.is_visible)
        return Progress("Translating", "lines", count, done=out.lines, shown=shown, closes=True)

    def write(self, out: Destination, progress: Progress, companion: Companion | None = None) -> None:
        """Translate the remaining lines, and write the output.

        companion: receives alignments. Raises DataError if the files have different numbers of lines, and the same
        errors as `Translator.translate_window`.
        """
        warnings = LineWarnings(out.counts, not self.translator.meta.whole_texts)
        faulty = FaultyLines(self.translator, self.on_error, warnings, self.choice)
        self.translator.warn_unfinished = self.source is None
        try:
            for lines, parallel in self._windows(out):
                first, counts = out.lines + 1, warnings.window()
                window, parallel = faulty.repair(lines, parallel, first)
                self.translator.training_texts.check_language(window)
                requests = self._requests(parallel, first)
                results = faulty.translate_window(window, requests, self.batch_size, first, progress)
                best: list[Sequence[LinePart]] = []
                texts = self._format_window(window, results, first, warnings, best)
                if self.alignments is not None and companion is not None:
                    texts = self.alignments.write_after(texts, best, first, warnings, companion)
                out.write(len(window), texts, counts)
        finally:
            warnings.report()

    def _format_window(
        self,
        window: list[str],
        results: Iterator[list[Translation]],
        first: int,
        warnings: LineWarnings,
        best: list[Sequence[LinePart]],
    ) -> Iterator[bytes]:
        """Yield the output of each line, and append the parts of its best translation to `best`."""
        for line, (text, hypotheses) in enumerate(zip(window, results, strict=True), start=first):
            if self.source is not None:  # the standard input may never end, so its warnings are not collected
                lengths = self.translator.training_texts.lengths(self.request.tags)
                warnings.note_translation(line, text, hypotheses[0], self.translator.engine.limits.target, lengths)
            warnings.note_guard(line, hypotheses[0])
            parts = hypotheses[0].parts or [LinePart(text, hypotheses[0].text)]
            best.append([part._replace(translation=one_line(part.translation)) for part in parts])
            if self.trees is not None:
                self.trees.write(line, text, hypotheses)
            yield self._format(line, hypotheses).encode()

    def _format(self, line: int, hypotheses: list[Translation]) -> str:
        if self.nbest > 1:
            rows = [[str(line - 1), one_line(each.text), f"{each.score:.6f}"] for each in hypotheses]
        else:
            score = [f"{hypotheses[0].log_probability:.6f}"] if self.scores else []
            rows = [[*score, one_line(hypotheses[0].text)]]
        if self.token_scores:
            rows = [[*row, *token_columns(each)] for row, each in zip(rows, hypotheses, strict=False)]
        return "".join((" ||| " if self.nbest > 1 else "\t").join(row) + "\n" for row in rows)

    def _requests(self, parallel: Mapping[str, list[str]], first: int) -> Request | list[Request]:
        """Return one request for all lines, or one per line. first: the number of the first line."""
        if not parallel:
            return self.request
        count = max(map(len, parallel.values()))
        requests = [replace(self.request, prefix=prefix) for prefix in parallel.get("prefix", [""] * count)]
        if self.constraints is None:
            return requests
        return [
            replace(request, control=self._control(line, number))
            for number, (request, line) in enumerate(zip(requests, parallel["constraints"], strict=True), start=first)
        ]

    def _control(self, line: str, number: int) -> Control | None:
        """Return the request's control with the phrases of a line added. Raises DataError if they are invalid."""
        try:
            phrases = read_phrases(line)
        except ConfigError as error:
            raise DataError(f"{self.constraints}, line {number}: {error}") from None
        control = self.request.control
        return replace(control or Control(), phrases=phrases) if phrases else control

    def _windows(self, out: Destination) -> Iterator[tuple[list[str], Mapping[str, list[str]]]]:
        """Yield windows of consecutive lines, each with the parallel lines of the other files by name.

        Raises DataError, with both counts, if the files have different numbers of lines. For the standard input, which
        may never end, only the lines read so far are counted.
        """
        from dragoman.inference.translation.translator import WINDOW_BATCHES

        size, count = WINDOW_BATCHES * self.batch_size, out.lines
        read = read_lines if self.on_error == "stop" else read_any_lines
        lines = out.remaining_lines("input", read(self.source), self.source)
        others = {
            name: out.remaining_lines(name, read_lines(path), path) for name, path in self._parallel_files.items()
        }
        for window in windows(lines, size, self.source):
            count += len(window)
            parallel = {name: list(islice(each, len(window))) for name, each in others.items()}
            for name, others_window in parallel.items():
                if len(others_window) < len(window):
                    total = f"at least {count}" if self.source is None else str(count + sum(1 for _ in lines))
                    raise self._unequal(name, total, count - len(window) + len(others_window))
            if self.source is not None and len(window) < size:  # raise the error before the last window is translated
                self._check_exhausted(others, count)
            yield window, parallel
        self._check_exhausted(others, count)

    def _check_exhausted(self, others: Mapping[str, Iterator[str]], count: int) -> None:
        """Raise DataError if another file has more lines than `count`."""
        for name, lines in others.items():
            if more := sum(1 for _ in lines):
                raise self._unequal(name, str(count), count + more)

    def _unequal(self, name: str, lines: str, others: int) -> DataError:
        return DataError(
            f"{self.source or 'standard input'} has {lines} line(s) and {self._parallel_files[name]} has {others}: "
            f"line n of --{name} {_CONTENTS[name]}"
        )


def _identity(part: LinePart) -> Alignment:
    return tuple((word, word) for word in range(len(part.source.split())))


def _join_alignments(line: Sequence[LinePart], alignments: Sequence[Alignment | None]) -> Alignment | None:
    """Return the alignment of a line from those of its parts; None if one of them is missing."""
    joined: list[tuple[int, int]] = []
    source, target = _WordCounter(), _WordCounter()
    for part, alignment in zip(line, alignments, strict=True):
        if alignment is None:
            return None
        words = source.add(part.source), target.add(part.translation)
        joined += [(words[0] + i, words[1] + j) for i, j in alignment]
    return tuple(dict.fromkeys(joined))


class _WordCounter:
    """Counts the words of a text that consists of several parts, which may divide a word."""

    def __init__(self) -> None:
        self._words, self._is_within_word = 0, False

    def add(self, part: str) -> int:
        """Add a part, and return the index of its first word."""
        if not part:
            return self._words
        first = self._words - (self._is_within_word and not part[0].isspace())
        self._words = first + len(part.split())
        self._is_within_word = not part[-1].isspace()
        return first


def token_columns(translation: Translation) -> list[str]:
    """Return two columns: the tokens, including the end of sentence, and their log-probabilities in nats.

    The values of a column are separated by spaces.
    """
    ids = (*translation.ids, *([EOS] if translation.finished and translation.token_log_probabilities else []))
    pieces = [piece.replace(" ", "␣") for piece in translation.tokenizer.pieces(ids)]
    return [" ".join(pieces), " ".join(f"{each:.6f}" for each in translation.token_log_probabilities)]
