"""`Writer`: continues texts token by token, and slides on where the model has a window and it is full."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import torch

from dragoman.decode.prompts import Prompts
from dragoman.decode.sampling import Draws, uniforms
from dragoman.generation.request import GenerationRequest
from dragoman.generation.text_stream import TextStream
from dragoman.models.interface import Decoder
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer


class Piece(NamedTuple):
    """Text that a sample goes on with. row: which of the samples."""

    row: int
    text: str


@dataclass
class _Sample:
    """A text that is being written. context: what of it is read, from BOS on unless it has slid."""

    context: list[int]
    text: TextStream
    numbers: torch.Tensor
    over: bool = False


@dataclass(frozen=True)
class Writer:
    """A decoder without a source, its vocabulary, and the window: how many tokens it reads at most, None for any."""

    decoder: Decoder
    tokenizer: Tokenizer
    window: int | None
    device: torch.device

    def write(self, prompts: Sequence[tuple[int, str]], request: GenerationRequest) -> Iterator[Piece]:
        """Pieces of the samples of each prompt, as they are drawn; of sample j of prompt i, row is i · samples + j.

        prompts: number, which with the seed decides what is drawn, and text. All samples are written at once, prompts
        of unequal length padded on the left. A sample that has filled the window goes on with the last half of it, read
        anew: what it gets depends on its own length alone. Raises ModelError where the model's log-probabilities are
        NaN.
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
                for place, token in zip(draw.rows.tolist(), draw.tokens.tolist(), strict=True):
                    row, sample = live[place], samples[live[place]]
                    if token == EOS:
                        sample.over = True
                        continue
                    sample.context.append(token)
                    if piece := sample.text.push(token):
                        yield Piece(row, piece)
                    if sample.text.stopped:
                        sample.over = True
                        draws.stop(torch.tensor([place], device=self.device))
            drawn += steps
            live = [row for row in live if not samples[row].over]
        for row, sample in enumerate(samples):
            if piece := sample.text.finish():
                yield Piece(row, piece)

    def _begun(self, number: int, text: str, request: GenerationRequest) -> list[_Sample]:
        ids = self.tokenizer.encode(text)
        numbers = uniforms([(request.seed, number)], request.samples, request.max_tokens)[0]
        return [_Sample([BOS, *ids], TextStream(self.tokenizer, ids, request.stop), each) for each in numbers]

    def _slide(self, context: list[int]) -> None:
        """Where the window cannot hold it, leave as much as fills half of it."""
        if self.window is not None and len(context) > self.window:
            del context[: -max(1, self.window // 2)]
