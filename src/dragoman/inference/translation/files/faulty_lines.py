"""`FaultyLines`: translates files with lines that are not UTF-8 or exceed the model's maximum length."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from dragoman.base.errors import ConfigError, TooLongError
from dragoman.base.progress import Progress
from dragoman.data.files.lines import has_broken_utf8
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.translation.line_warnings import LineWarnings
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Choice, Translation

OnError = Literal["stop", "replace", "blank"]


def on_error_of(name: str) -> OnError:
    """Return `name` as a value of `--on-error`. Raises ConfigError if it is invalid."""
    if name in get_args(OnError):
        return cast(OnError, name)
    raise ConfigError(f"unknown --on-error '{name}': use stop, replace or blank")


@dataclass
class FaultyLines:
    """Translates lines, including faulty lines.

    on_error: `stop` raises an error for a faulty line; `blank` leaves its translation blank; `replace` replaces invalid
    bytes with U+FFFD, and translates a line that exceeds the model's maximum length in parts. warnings: collects
    warnings about faulty lines. choice: orders the hypotheses of each line, sentence or part.
    """

    translator: SupportsLines
    on_error: OnError = "stop"
    warnings: LineWarnings = field(default_factory=LineWarnings)
    choice: Choice | None = None

    def __post_init__(self) -> None:
        if self.on_error != "stop" and self.translator.tokenizers.reads_vectors:
            raise ConfigError("--on-error is for text, but the sources of this model are vectors: leave out --on-error")

    def repair(
        self, lines: list[str], parallel: Mapping[str, list[str]], first: int
    ) -> tuple[list[str], Mapping[str, list[str]]]:
        """Repair lines with invalid UTF-8, or replace them and their parallel lines with blank lines.

        Returns the lines, which contain no lone surrogates, and the parallel lines. parallel: lines of other files, by
        name. first: the number of the first line.
        """
        if self.on_error == "stop":
            return lines, parallel
        broken = [index for index, line in enumerate(lines) if has_broken_utf8(line)]
        if not broken:
            return lines, parallel
        blank, lines = self.on_error == "blank", list(lines)
        parallel = {name: list(others) for name, others in parallel.items()}
        for index in broken:
            self.warnings.note(f"with broken UTF-8 were {'left blank' if blank else 'repaired'}", first + index)
            repaired = lines[index].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            lines[index] = "" if blank else repaired
            for others in parallel.values() if blank else ():
                others[index] = ""
        return lines, parallel

    def translate_window(
        self,
        texts: Sequence[str],
        requests: Request | Sequence[Request],
        batch_size: int,
        first: int,
        progress: Progress | None = None,
    ) -> Iterator[list[Translation]]:
        """Like `Translator.translate_window`, but a line that is too long raises an error only if on_error is stop."""
        done = 0
        while done < len(texts):
            rest = requests if isinstance(requests, Request) else requests[done:]
            try:
                for hypotheses in self.translator.translate_window(
                    texts[done:], rest, batch_size, first=first + done, progress=progress, choice=self.choice
                ):
                    done += 1
                    yield hypotheses
            except TooLongError as error:
                if self.on_error == "stop" or error.side == "target" or error.index != first + done - 1:
                    raise
                request = rest if isinstance(rest, Request) else rest[0]
                yield self._translate_too_long(texts[done], request, batch_size, first + done)
                done += 1
                if progress is not None:
                    progress.update(progress.done + 1, progress.status)

    def _translate_too_long(self, text: str, request: Request, batch_size: int, number: int) -> list[Translation]:
        if self.on_error == "blank":
            self.warnings.note("exceeding the model's maximum length were left blank", number)
            return next(self.translator.translate_window([""], _later_request(request), batch_size, first=number))
        self.warnings.note("exceeding the model's maximum length were translated in parts", number)
        return [self._translate_in_parts(text, request, batch_size, number)]

    def _translate_in_parts(self, text: str, request: Request, batch_size: int, number: int) -> Translation:
        """Return the best translations of the text's parts, joined. Text between parts is kept.

        The parts are sentences or, if they are too long, parts of sentences. The prefix and the required phrases apply
        to the first part.
        """
        assert self.translator.division is not None
        line = self.translator.division.divide_to_fit(text, _later_request(request))
        texts, requests = zip(*line.texts(), strict=True)
        whole = [replace(each, divide=False) for each in (request, *requests[1:])]
        results = self.translator.translate_window(texts, whole, batch_size, first=number, choice=self.choice)
        return line.join([each[:1] for each in results])[0]


def _later_request(request: Request) -> Request:
    """Return the request for parts after the first: without prefix and required phrases, with the same glossary."""
    control = None if request.control is None else replace(request.control, phrases=())
    return replace(request, prefix="", control=control)
