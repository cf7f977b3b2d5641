"""`Writer` continues texts token by token according to a `GenerationRequest`; `TextStream` turns tokens into text."""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple, TypedDict

import torch

from dragoman.base.errors import ConfigError
from dragoman.decode.prompts import Prompts
from dragoman.decode.sampling import Draw, Draws, GenerationConfig, uniforms
from dragoman.models.interface import Decoder
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer

MAX_TOKENS = 256


@dataclass(frozen=True)
class GenerationRequest:
    """All options of a generation. `LanguageModel.request` builds a request with the model's settings as defaults.

    sampling: temperature, top_k, top_p, forbidden tokens and the start of prompts; length limits relative to a source
    have no effect. stop:
    stop strings; a text ends before the first stop string in it. seed: together with the numbers of the prompt and the
    sample, it determines the random numbers. samples: number of samples per prompt. max_tokens: maximum number of
    tokens of a continuation, including the end symbol. Raises ConfigError for an invalid value.
    """

    sampling: GenerationConfig = field(default_factory=GenerationConfig)
    stop: tuple[str, ...] = ()
    seed: int = 1
    samples: int = 1
    max_tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        if "" in self.stop:
            raise ConfigError("a stop string is empty, which would end every text before it begins: remove it")
        for name, minimum in (("seed", 0), ("samples", 1), ("max_tokens", 1)):
            if getattr(self, name) < minimum:
                raise ConfigError(f"{name} must be at least {minimum}, not {getattr(self, name)}")


class GenerationSettings(TypedDict, total=False):
    """The arguments of `LanguageModel.request`, which `generate` and `stream` also accept."""

    temperature: float | None
    top_k: int | None
    top_p: float | None
    stop: tuple[str, ...] | list[str]
    seed: int
    samples: int
    max_tokens: int


class TextStream:
    """Decodes the continuation of a prompt token by token.

    The concatenated pieces equal the text of all tokens decoded at once. Text is held back while it may be the
    beginning of a stop string, and bytes are held back until they form a whole character. The pieces do not contain the
    stop string or the text after it. If the text contains several stop strings, it ends before the one that is
    completed first, or before the longest of those that are completed at the same character. The result does not depend
    on how the text is divided into tokens.

    stopped: True if a stop string has occurred.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], stop: Sequence[str] = ()) -> None:
        """prompt: ids of the prompt, which determine whether the continuation begins with a blank."""
        self._tokenizer, self._stop = tokenizer, tuple(stop)
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._strip_first_space = tokenizer.added_space == "first" and not prompt
        self._ends_in_space = tokenizer.added_space == "last"
        self._buffer = " " if self._ends_in_space and prompt else ""
        self.stopped = False

    def push(self, token: int) -> str:
        """Add a token and return the text that can be shown now, which is often empty."""
        return self._release(self._bytes.decode(self._tokenizer.surface(token)), last=False)

    def finish(self) -> str:
        """Return the text that is still held back. An incomplete character at the end is decoded as U+FFFD."""
        return self._release(self._bytes.decode(b"", True), last=True)

    def _release(self, text: str, last: bool) -> str:
        """Add decoded text to the buffer, and return and remove the part of the buffer that can be shown."""
        if self.stopped:
            return ""
        if self._strip_first_space and text:
            text, self._strip_first_space = text.removeprefix(" "), False
        text = self._buffer + text
        matches = [(start + len(stop), start) for stop in self._stop if (start := text.find(stop)) >= 0]
        if matches:
            self.stopped, self._buffer = True, ""
            return text[: min(matches)[1]]
        if last:
            self._buffer = ""
            return text.removesuffix(" ") if self._ends_in_space else text
        cut = len(text) - self._held_back_length(text)
        self._buffer = text[cut:]
        return text[:cut]

    def _held_back_length(self, text: str) -> int:
        """Return the number of final characters that may be the beginning of a stop string, or a blank to remove."""
        max_prefix = max(map(len, self._stop), default=1) - 1
        sizes = range(min(max_prefix, len(text)), 0, -1)
        prefix = next((size for size in sizes if self._is_stop_prefix(text[-size:])), 0)
        return max(prefix, int(self._ends_in_space and text.endswith(" ")))

    def _is_stop_prefix(self, text: str) -> bool:
        return any(stop.startswith(text) for stop in self._stop)


Finish = Literal["stop", "length"]
"""Why a text ended: with the end symbol or a stop string, or at the maximum number of tokens."""


class ScoredToken(NamedTuple):
    """A token of a text.

    log_probability: natural, under the model without temperature, restrictions and truncation; None for a token without
    context. best: the most probable tokens at its position with their log-probabilities, best first.
    """

    id: int
    log_probability: float | None
    best: tuple[tuple[int, float], ...] = ()


class Piece(NamedTuple):
    """A piece of a sample's text, which is empty while text is held back.

    row: number of the sample. token: the token that was drawn, which may be the end symbol; None for the last piece of
    a sample. finish: why the sample ended, in its last piece.
    """

    row: int
    text: str
    token: ScoredToken | None = None
    finish: Finish | None = None


Prompt = str | Sequence[int]
"""A text, or token ids."""


@dataclass
class _Sample:
    """A text that is being generated.

    context: the tokens that the decoder reads; they start with BOS, if prompts do, until the window moves. text:
    decodes the tokens. numbers: (max_tokens,) random numbers. ended: True if the text is complete.
    """

    context: list[int]
    text: TextStream
    numbers: torch.Tensor
    ended: bool = False


@dataclass(frozen=True)
class Writer:
    """Generates texts with a decoder without a source.

    window: maximum number of tokens that the decoder reads; None: unlimited.
    """

    decoder: Decoder
    tokenizer: Tokenizer
    window: int | None
    device: torch.device

    def write(
        self, prompts: Sequence[tuple[int, Prompt]], request: GenerationRequest, best: int = 0
    ) -> Iterator[Piece]:
        """Yield a piece per token during generation, and a last one per sample.

        The row of sample j of prompt i is i · samples + j. prompts: pairs of a number and a text; the number and the
        seed determine the random numbers. best: number of most probable tokens per position. All samples are generated
        at once, and prompts of unequal length are padded on the left. When a sample has filled the window, the last
        half of the window is read again, and generation continues from there. The text of a sample does not depend on
        other samples. Raises ModelError if the model's log-probabilities are NaN.
        """
        samples = [sample for number, text in prompts for sample in self._start_samples(number, text, request)]
        drawn, live = 0, list(range(len(samples)))
        while live and drawn < request.max_tokens:
            for row in live:
                self._slide(samples[row].context)
            contexts = [samples[row].context for row in live]
            free = inf if self.window is None else self.window - max(map(len, contexts)) + 1
            steps = int(min(request.max_tokens - drawn, free))
            numbers = torch.stack([samples[row].numbers[drawn : drawn + steps] for row in live]).unsqueeze(1)
            minimum_length = max(0, request.sampling.minimum_length - drawn)
            config = request.sampling.model_copy(update={"minimum_length": minimum_length})
            batch = Prompts.after(self.decoder, contexts, [steps] * len(live), self.device)
            draws = Draws(self.decoder, batch, config, numbers, best=best)
            for draw in draws:
                for number, token in zip(draw.rows.tolist(), _scored_tokens(draw), strict=True):
                    row, sample = live[number], samples[live[number]]
                    if token.id == EOS:
                        sample.ended = True
                        yield Piece(row, "", token)
                    else:
                        sample.context.append(token.id)
                        yield Piece(row, sample.text.push(token.id), token)
                    if sample.text.stopped:
                        sample.ended = True
                        draws.stop(torch.tensor([number], device=self.device))
                    if sample.ended:
                        yield Piece(row, sample.text.finish(), finish="stop")
            drawn += steps
            live = [row for row in live if not samples[row].ended]
        for row in live:
            yield Piece(row, samples[row].text.finish(), finish="length")

    def _start_samples(self, number: int, prompt: Prompt, request: GenerationRequest) -> list[_Sample]:
        """Return all samples of prompt `number`, before any token is drawn."""
        ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        numbers = uniforms([(request.seed, number)], request.samples, request.max_tokens)[0]
        start = [BOS] if (request.sampling.prompt_start or not ids) and ids[:1] != [BOS] else []
        return [_Sample([*start, *ids], TextStream(self.tokenizer, ids, request.stop), each) for each in numbers]

    def _slide(self, context: list[int]) -> None:
        """If a context is longer than the window, keep only its last tokens, which fill half of the window."""
        if self.window is not None and len(context) > self.window:
            del context[: -max(1, self.window // 2)]


def _scored_tokens(draw: Draw) -> list[ScoredToken]:
    """Return the drawn tokens, with the most probable ones at their positions."""
    plain = list(map(ScoredToken, draw.tokens.tolist(), draw.log_probabilities.tolist()))
    if draw.best_tokens is None or draw.best_log_probabilities is None:
        return plain
    rows = zip(plain, draw.best_tokens.tolist(), draw.best_log_probabilities.tolist(), strict=True)
    return [token._replace(best=tuple(zip(ids, scores, strict=True))) for token, ids, scores in rows]
