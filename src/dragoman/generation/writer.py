"""`Writer` continues texts token by token according to a `GenerationRequest`; `TextStream` turns tokens into text."""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, TypedDict

import torch

from dragoman.base.errors import ConfigError
from dragoman.decode.prompts import Prompts
from dragoman.decode.sampling import Draws, SamplingConfig, uniforms
from dragoman.models.interface import Decoder
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer

MAX_TOKENS = 256


@dataclass(frozen=True)
class GenerationRequest:
    """A complete request, as `LanguageModel.request` returns it with the model's own settings as defaults.

    sampling: temperature, top_k, top_p and forbidden tokens; length limits relative to a source have no effect. stop:
    strings; a text ends before the first of them. seed: determines the random numbers, together with the numbers of
    prompt and sample. samples: samples per prompt. max_tokens: maximum tokens of a continuation, including its end.
    Raises ConfigError for an invalid value.
    """

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    stop: tuple[str, ...] = ()
    seed: int = 1
    samples: int = 1
    max_tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        if "" in self.stop:
            raise ConfigError("a stop string is empty, which would end every text before it begins: remove it")
        for name, least in (("seed", 0), ("samples", 1), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}")


class GenerationSettings(TypedDict, total=False):
    """The arguments of `LanguageModel.request`, which `generate` and `stream` pass on."""

    temperature: float | None
    top_k: int | None
    top_p: float | None
    stop: tuple[str, ...] | list[str]
    seed: int
    samples: int
    max_tokens: int


class TextStream:
    """The text that tokens add to a prompt; the concatenated pieces equal the text of all tokens decoded at once.

    Text is held back while it may be the beginning of a stop string, and bytes until they form a whole character.
    stopped: whether a stop string has occurred; the stop string and the text after it are in no piece. The stop string
    that is complete first counts, and of two that end together the longer one, however the text is divided into tokens.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], stop: Sequence[str] = ()) -> None:
        """prompt: ids of the prompt, after which the continuation is spaced as within one text."""
        self._tokenizer, self._stop = tokenizer, tuple(stop)
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._strips = tokenizer.added_space == "first" and not prompt
        self._ends_in_blank = tokenizer.added_space == "last"
        self._held = " " if self._ends_in_blank and prompt else ""
        self.stopped = False

    def push(self, token: int) -> str:
        """Add a token; returns the text that can be shown now, which is often empty."""
        return self._released(self._bytes.decode(self._tokenizer.surface(token)), last=False)

    def finish(self) -> str:
        """Return the text that is still held back. An incomplete character at the end becomes U+FFFD."""
        return self._released(self._bytes.decode(b"", True), last=True)

    def _released(self, text: str, last: bool) -> str:
        if self.stopped:
            return ""
        if self._strips and text:
            text, self._strips = text.removeprefix(" "), False
        text = self._held + text
        found = [(start + len(stop), start) for stop in self._stop if (start := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        if last:
            self._held = ""
            return text.removesuffix(" ") if self._ends_in_blank else text
        cut = len(text) - self._kept(text)
        self._held = text[cut:]
        return text[:cut]

    def _kept(self, text: str) -> int:
        """Return how many final characters must be held back: the possible beginning of a stop string, or a blank."""
        longest = max(map(len, self._stop), default=1) - 1
        beginning = next(
            (size for size in range(min(longest, len(text)), 0, -1) if self._begins_a_stop(text[-size:])), 0
        )
        return max(beginning, int(self._ends_in_blank and text.endswith(" ")))

    def _begins_a_stop(self, text: str) -> bool:
        return any(stop.startswith(text) for stop in self._stop)


class Piece(NamedTuple):
    """Text that continues a sample. row: number of the sample."""

    row: int
    text: str


@dataclass
class _Sample:
    """A text that is being written. context: the tokens read, starting with BOS unless the window has moved."""

    context: list[int]
    text: TextStream
    numbers: torch.Tensor
    ended: bool = False


@dataclass(frozen=True)
class Writer:
    """Writes texts with a decoder without a source. window: maximum number of tokens it reads; None: unlimited."""

    decoder: Decoder
    tokenizer: Tokenizer
    window: int | None
    device: torch.device

    def write(self, prompts: Sequence[tuple[int, str]], request: GenerationRequest) -> Iterator[Piece]:
        """Yield pieces of the samples as they are drawn; the row of sample j of prompt i is i · samples + j.

        prompts: pairs of a number and a text; the number and the seed determine the random numbers. All samples are
        written at once; prompts of unequal length are padded on the left. When a sample has filled the window, the last
        half of it is read again and the sample continues from there, so its text does not depend on other samples.
        Raises ModelError if the model's log-probabilities are NaN.
        """
        samples = [sample for number, text in prompts for sample in self._begun(number, text, request)]
        drawn, live = 0, list(range(len(samples)))
        while live and drawn < request.max_tokens:
            for row in live:
                self._slide(samples[row].context)
            contexts = [samples[row].context for row in live]
            room = inf if self.window is None else self.window - max(map(len, contexts)) + 1
            steps = int(min(request.max_tokens - drawn, room))
            numbers = torch.stack([samples[row].numbers[drawn : drawn + steps] for row in live]).unsqueeze(1)
            least = max(0, request.sampling.minimum_length - drawn)
            config = request.sampling.model_copy(update={"minimum_length": least})
            begun = Prompts.after(self.decoder, contexts, [steps] * len(live), self.device)
            draws = Draws(self.decoder, begun, config, numbers)
            for draw in draws:
                for number, token in zip(draw.rows.tolist(), draw.tokens.tolist(), strict=True):
                    row, sample = live[number], samples[live[number]]
                    if token == EOS:
                        sample.ended = True
                        continue
                    sample.context.append(token)
                    if piece := sample.text.push(token):
                        yield Piece(row, piece)
                    if sample.text.stopped:
                        sample.ended = True
                        draws.stop(torch.tensor([number], device=self.device))
            drawn += steps
            live = [row for row in live if not samples[row].ended]
        for row, sample in enumerate(samples):
            if piece := sample.text.finish():
                yield Piece(row, piece)

    def _begun(self, number: int, text: str, request: GenerationRequest) -> list[_Sample]:
        ids = self.tokenizer.encode(text)
        numbers = uniforms([(request.seed, number)], request.samples, request.max_tokens)[0]
        return [_Sample([BOS, *ids], TextStream(self.tokenizer, ids, request.stop), each) for each in numbers]

    def _slide(self, context: list[int]) -> None:
        """Shorten a context that exceeds the window to the last half of the window."""
        if self.window is not None and len(context) > self.window:
            del context[: -max(1, self.window // 2)]
