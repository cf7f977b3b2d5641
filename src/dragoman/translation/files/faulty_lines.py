"""`FaultyLines`: handles lines that are not UTF-8 or are longer than the model can read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from dragoman.base.errors import ConfigError, TooLongError
from dragoman.base.progress import Progress
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.text.division import divide
from dragoman.text.symbols import EOS
from dragoman.translation.guard.guard import merged
from dragoman.translation.line_warnings import LineWarnings
from dragoman.translation.request import Request
from dragoman.translation.reranking.choice import Choice, chosen
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator

OnError = Literal["stop", "replace", "blank"]


def on_error_of(name: str) -> OnError:
    """Return a value of `--on-error`. Raises ConfigError for an invalid one."""
    if name in get_args(OnError):
        return cast(OnError, name)
    raise ConfigError(f"unknown --on-error '{name}': use stop, replace or blank")


@dataclass
class FaultyLines:
    """Translates lines, including faulty ones. on_error: raise an error (stop), repair the line (replace), or leave its
    translation blank (blank).

    `replace` reads U+FFFD for bytes that are not UTF-8, and translates a line that exceeds the model's positions in
    parts. noted: collects warnings about faulty lines. choice: orders the hypotheses of a part.
    """

    translator: Translator
    on_error: OnError = "stop"
    noted: LineWarnings = field(default_factory=LineWarnings)
    choice: Choice | None = None

    def __post_init__(self) -> None:
        if self.on_error != "stop" and self.translator.tokenizers.reads_vectors:
            raise ConfigError("--on-error is for text, but this model reads vectors: leave it out")

    def readable(
        self, lines: list[str], parallel: Mapping[str, list[str]], first: int
    ) -> tuple[list[str], Mapping[str, list[str]]]:
        """Return the lines without lone surrogates, and the parallel lines, which are blank where a line is left blank.

        parallel: lines of other files, by name; first: the number of the first line.
        """
        if self.on_error == "stop":
            return lines, parallel
        broken = [index for index, line in enumerate(lines) if has_broken_utf8(line)]
        if not broken:
            return lines, parallel
        blank, lines = self.on_error == "blank", list(lines)
        parallel = {name: list(others) for name, others in parallel.items()}
        for index in broken:
            self.noted.note(f"with broken UTF-8 were {'left blank' if blank else 'repaired'}", first + index)
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
        """As `Translator.translate_window`, but a line that is too long raises an error only if on_error is stop."""
        begin = 0
        while begin < len(texts):
            rest = requests if isinstance(requests, Request) else requests[begin:]
            try:
                for found in self.translator.translate_window(texts[begin:], rest, batch_size, first + begin, progress):
                    begin += 1
                    yield found
            except TooLongError as error:
                if self.on_error == "stop" or error.side == "target" or error.index != first + begin - 1:
                    raise
                request = rest if isinstance(rest, Request) else rest[0]
                yield self._too_long(texts[begin], request, batch_size, first + begin)
                begin += 1
                if progress is not None:
                    progress.update(progress.done + 1, progress.status)

    def _too_long(self, text: str, request: Request, batch_size: int, number: int) -> list[Translation]:
        if self.on_error == "blank":
            self.noted.note("longer than the model can read were left blank", number)
            return next(self.translator.translate_window([""], _of_later_parts(request), batch_size, number))
        self.noted.note("longer than the model can read were translated in parts", number)
        return [self._in_parts(text, request, batch_size, number)]

    def _in_parts(self, text: str, request: Request, batch_size: int, number: int) -> Translation:
        """Return the best translations of a text's parts, joined; whitespace between parts is kept.

        The prefix and the required phrases apply to the first part. The ids include the ends of sentence of all parts
        but the last.
        """
        later = _of_later_parts(request)
        parts = divide(text, lambda part: self.translator.fits(part, later))
        texts = [part.strip() for part in parts]
        found = self.translator.translate_window(texts, [request, *[later] * (len(parts) - 1)], batch_size, number)
        if self.choice is not None:
            found = chosen(self.choice, texts, found, batch_size)
        best = [each[0] for each in found]
        finished = all(each.finished for each in best)
        ids = tuple(token for each in best for token in (*each.ids, *([EOS] if each.finished else [])))
        return replace(
            best[0],
            text=joined(parts, [each.text for each in best]),
            score=sum(each.score for each in best),
            log_probability=sum(each.log_probability for each in best),
            ids=ids[:-1] if finished else ids,
            finished=finished,
            token_log_probabilities=tuple(each for part in best for each in part.token_log_probabilities),
            tree=None,
            patched=any(each.patched for each in best),
            guarded=merged(each.guarded for each in best),
        )


def _of_later_parts(request: Request) -> Request:
    """Return the request without its prefix and its required phrases; a glossary remains."""
    control = None if request.control is None else replace(request.control, phrases=())
    return replace(request, prefix="", control=control)


def joined(parts: Iterable[str], translations: Iterable[str]) -> str:
    """Join translations, each with the whitespace around its part."""
    texts = []
    for part, translation in zip(parts, translations, strict=True):
        visible = part.strip()
        begin = part.index(visible)
        texts.append(part[:begin] + translation.strip() + part[begin + len(visible) :])
    return "".join(texts)
