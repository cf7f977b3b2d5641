"""`FaultyLines`: what is done about lines that cannot be read, or that are longer than the model can read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from dragoman.base.errors import ConfigError, LineError
from dragoman.base.progress.work import Work
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.inference.noted_lines import NotedLines
from dragoman.text.division import divide
from dragoman.translation.request import Request
from dragoman.translation.result import Translation
from dragoman.translator import Translator

OnError = Literal["stop", "replace", "blank"]


def on_error_of(name: str) -> OnError:
    """Raises ConfigError for what is none."""
    if name in get_args(OnError):
        return cast(OnError, name)
    raise ConfigError(f"lines that cannot be read: stop, replace or blank, not '{name}' (--on-error)")


@dataclass
class FaultyLines:
    """on_error: raise an error (stop), mend the line (replace), or give it a blank translation (blank).

    To replace is to read U+FFFD for bytes that are not UTF-8, and to translate a line that is longer than the model's
    positions part by part. noted: where each such line is told of.
    """

    translator: Translator
    on_error: OnError = "stop"
    noted: NotedLines = field(default_factory=NotedLines)

    def __post_init__(self) -> None:
        if self.on_error != "stop" and self.translator.tokenizers.reads_vectors:
            raise ConfigError("--on-error goes with texts only, and this model reads vectors: leave it out")

    def readable(self, lines: list[str], prefixes: list[str] | None, first: int) -> tuple[list[str], list[str] | None]:
        """The lines without lone surrogates, and their prefixes; what is left blank has none.

        first: the number of the first line.
        """
        broken = (
            [] if self.on_error == "stop" else [place for place in range(len(lines)) if has_broken_utf8(lines[place])]
        )
        if not broken:
            return lines, prefixes
        blank, lines = self.on_error == "blank", list(lines)
        prefixes = None if prefixes is None else list(prefixes)
        for place in broken:
            self.noted.note(f"of broken UTF-8 were {'left blank' if blank else 'mended'}", first + place)
            mended = lines[place].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            lines[place] = "" if blank else mended
            if blank and prefixes is not None:
                prefixes[place] = ""
        return lines, prefixes

    def translate_window(
        self,
        texts: Sequence[str],
        requests: Request | Sequence[Request],
        batch_size: int,
        first: int,
        work: Work | None = None,
    ) -> Iterator[list[Translation]]:
        """As `Translator.translate_window`; a line that is too long ends it where it has to stop only."""
        begin = 0
        while begin < len(texts):
            rest = requests if isinstance(requests, Request) else requests[begin:]
            try:
                for found in self.translator.translate_window(texts[begin:], rest, batch_size, first + begin, work):
                    begin += 1
                    yield found
            except LineError as error:
                if self.on_error == "stop" or error.side == "target" or error.place != first + begin - 1:
                    raise
                request = rest if isinstance(rest, Request) else rest[0]
                yield self._too_long(texts[begin], request, batch_size, first + begin)
                begin += 1
                if work is not None:
                    work.tell(work.done + 1, work.said)

    def _too_long(self, text: str, request: Request, batch_size: int, number: int) -> list[Translation]:
        if self.on_error == "blank":
            self.noted.note("longer than the model can read were left blank", number)
            return next(self.translator.translate_window([""], replace(request, prefix=""), batch_size, number))
        self.noted.note("longer than the model can read were translated in parts", number)
        return [translated_in_parts(self.translator, text, request, batch_size, number)]


def translated_in_parts(
    translator: Translator, text: str, request: Request, batch_size: int, number: int
) -> Translation:
    """The best translations of a text's parts as one; a prefix is the first part's. Blanks between parts are kept."""
    limit = translator.engine.limits.source.tokens
    tags = len(request.tags)

    def fits(part: str) -> bool:
        return limit is None or len(translator.tokenizers.source.encode(part)) + tags <= limit

    parts = divide(text, fits)
    requests = [request, *[replace(request, prefix="")] * (len(parts) - 1)]
    best = [
        found[0]
        for found in translator.translate_window([part.strip() for part in parts], requests, batch_size, number)
    ]
    return replace(
        best[0],
        text=joined(parts, [each.text for each in best]),
        score=sum(each.score for each in best),
        log_probability=sum(each.log_probability for each in best),
        ids=tuple(number for each in best for number in each.ids),
        finished=all(each.finished for each in best),
    )


def joined(parts: Iterable[str], translations: Iterable[str]) -> str:
    """The translations, each with the blanks that stand around its part."""
    texts = []
    for part, translation in zip(parts, translations, strict=True):
        inked = part.strip()
        begin = part.index(inked)
        texts.append(part[:begin] + translation.strip() + part[begin + len(inked) :])
    return "".join(texts)
