"""`TorchEngine`: the engine that computes with a PyTorch model, in batches that fit the memory."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch

from dragoman.base.errors import ResourceError
from dragoman.base.machine.memory import available_memory, is_out_of_memory
from dragoman.base.progress import Work
from dragoman.data.batches.batch import collate, pad
from dragoman.decode.constraints.constraint import constrained_beam_size
from dragoman.decode.forced import CHUNK, force
from dragoman.decode.prompts import Prompts
from dragoman.decode.sampling import sample, uniforms
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.inspect.attention import AttentionMap, attention_maps, source_attention, without_weights
from dragoman.models.footprint import SHORT_TRIAL, Footprint, evaluate, measure, refined
from dragoman.models.interface import LengthLimits, Memory, SourceModel
from dragoman.nn.attention.interface import Attention
from dragoman.text.symbols import EOS
from dragoman.text.tokenizers import Tokenizers
from dragoman.translation.engine import Pair, Row
from dragoman.translation.fusion import FusedLanguageModels
from dragoman.translation.request import Decoding, Sampling
from dragoman.translation.unknown_words import Sentence, UnknownWords

_SEARCH_LOGITS, _SAMPLING_LOGITS = 3, 10
"""Copies of a step's logits that are held at one time, in units of float32; sampling sums in float64."""

_USUAL_MARGIN = 64
"""Tokens by which an output is longer than its source at most, as a rule; the limit may be farther."""

_USUAL_HEADS = 16
"""Of an attention at most, as a rule; a batch of more that does not fit is caught and split."""

Line = TypeVar("Line", Row, Pair)
Result = TypeVar("Result")


class TorchEngine:
    """An encoder and a decoder that search and sample.

    Batches hold rows of like length. Searches of one beam size and the same groups share them, with and without
    coverage apart, and samplings of one number of samples; all else may differ from row to row.
    """

    def __init__(self, model: SourceModel, tokenizers: Tokenizers, device: torch.device) -> None:
        """model: on `device`; it is put into evaluation mode."""
        self.model = model.eval()
        self._tokenizers, self._device = tokenizers, device
        self._unknown_words = UnknownWords(tokenizers)
        self._language_models = FusedLanguageModels(tokenizers, device)

    @property
    def limits(self) -> LengthLimits:
        """The model's."""
        return self.model.limits

    def refusal(self, row: Row) -> str | None:
        """It can do all that a request can ask for."""
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """As `Engine.hypotheses`; a batch that does not fit the memory is halved."""
        for places in _batches(rows, batch_size):
            found = self._halving([rows[place] for place in places], self._decoding_bytes, self._decoded)
            yield from zip(places, found, strict=True)

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """As `Engine.scores`; a batch that does not fit the memory is halved."""
        order = sorted(range(len(pairs)), key=lambda place: (len(pairs[place].target), len(pairs[place].source)))
        scores = [0.0] * len(pairs)
        with Work("Scoring", "pairs", len(pairs)) as work:
            for places in _chunks(order, batch_size):
                found = self._halving([pairs[place] for place in places], self._scoring_bytes, self._scored)
                for place, score in zip(places, found, strict=True):
                    scores[place] = score
                work.tell(work.done + len(places))
        return scores

    def _halving(
        self,
        lines: Sequence[Line],
        needs: Callable[[Sequence[Line], int], int],
        compute: Callable[[Sequence[Line]], list[Result]],
    ) -> list[Result]:
        """What `compute` gives for so many of `lines` at a time as fit the memory.

        needs: a rough count of the bytes that computing them all takes, told how many are free.
        """
        free, needed = self._free_bytes(), None
        try:
            needed = needs(lines, free)  # what has not been measured yet is, and may need too much for that
            if needed <= free:
                with torch.inference_mode():
                    return compute(lines)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        # outside of `except`, whose traceback would keep the failed attempt's tensors alive
        if len(lines) == 1:
            raise _too_big(lines[0], needed, free)
        middle = len(lines) // 2
        return self._halving(lines[:middle], needs, compute) + self._halving(lines[middle:], needs, compute)

    def _decoded(self, rows: Sequence[Row]) -> list[list[Hypothesis]]:
        """Of rows that can be decoded together."""
        tokens, keep = (tensor.to(self._device) for tensor in pad([row.source for row in rows], after=(EOS,)))
        memory = self.model.encode(tokens, keep)
        samplings = [row.decoding for row in rows if isinstance(row.decoding, Sampling)]
        if samplings:
            return self._sampled(memory, samplings, rows)
        sentences = [
            Sentence(row.text, row.decoding, row.prefix.ids, row.prefix.unknown, row.tags, row.constraints)
            for row in rows
            if isinstance(row.decoding, SearchConfig)
        ]
        fusion = self._language_models.rule([sentence.config.fusion for sentence in sentences])
        return self._unknown_words.search(self.model.decoder, memory, sentences, fusion)

    def _sampled(self, memory: Memory, samplings: Sequence[Sampling], rows: Sequence[Row]) -> list[list[Hypothesis]]:
        configs = [sampling.config for sampling in samplings]
        seeds = [(sampling.seed, row.number) for sampling, row in zip(samplings, rows, strict=True)]
        prompts = Prompts.of(self.model.decoder, memory, configs, [row.prefix.ids for row in rows])
        numbers = uniforms(seeds, samplings[0].samples, int((prompts.limits - prompts.prefix_lengths).max()))
        drawn = sample(self.model.decoder, prompts, configs, numbers)
        return [
            [replace(each, unknown=row.prefix.unknown) for each in samples]
            for row, samples in zip(rows, drawn, strict=True)
        ]

    def _scored(self, pairs: Sequence[Pair]) -> list[float]:
        """Of pairs that can be read together."""
        batch = collate([pair.source for pair in pairs], [pair.target for pair in pairs], range(len(pairs)))
        batch = batch.to(self._device)
        memory = self.model.encode(batch.source, batch.source_mask)
        scores = force(self.model.decoder, memory, batch.inputs, batch.labels, batch.target_mask)
        return [float(score) for score in scores.double().sum(1)]

    def _decoding_bytes(self, rows: Sequence[Row], free: int) -> int:
        """A rough count of the bytes that decoding `rows` holds at its longest, in float32."""
        length = max(len(row.source) for row in rows) + 1
        self._footprint = refined(self._footprint, self.model, length, training=False, free=free)
        decoding = rows[0].decoding
        hypotheses = max(map(_hypotheses, rows))
        logits = _SAMPLING_LOGITS if isinstance(decoding, Sampling) else _SEARCH_LOGITS
        # outputs are seldom longer; a batch that is after all is caught and split
        limit = max(length, *(len(row.prefix.ids) for row in rows)) + max(_margin(row.decoding) for row in rows)
        # a cache is held twice while it is reordered
        cache = 2 * hypotheses * evaluate(self._footprint.cache, limit)
        memory = evaluate(self._footprint.memory, length)
        vocabulary = logits * 4 * hypotheses * self._tokenizers.target.size
        return len(rows) * (max(evaluate(self._footprint.encoding, length), cache + vocabulary) + memory)

    def _scoring_bytes(self, pairs: Sequence[Pair], free: int) -> int:
        """Those of the logits, which are made a few at a time."""
        logits = len(pairs) * (max(len(pair.target) for pair in pairs) + 1)
        return 12 * min(logits, CHUNK) * self._tokenizers.target.size

    @cached_property
    def _footprint(self) -> Footprint:
        return measure(self.model, SHORT_TRIAL, training=False)

    def _free_bytes(self) -> int:
        if self._device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self._device)
            return int(free + torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device))
        return available_memory()


class AttentionTorchEngine(TorchEngine):
    """The engine of a single model, whose attention can also be shown; an ensemble has none of its own."""

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """As `AttentionEngine.attention`."""
        return attention_maps(self.model, self._tokenizers, target, source)

    def source_attention(
        self, pairs: Sequence[Pair], batch_size: int, layer: int | None = None, head: int | None = None
    ) -> list[np.ndarray]:
        """As `AttentionEngine.source_attention`; a batch that does not fit the memory is halved."""
        order = sorted(range(len(pairs)), key=lambda place: (len(pairs[place].target), len(pairs[place].source)))
        found: dict[int, np.ndarray] = {}
        for places in _chunks(order, batch_size):
            weights = self._halving(
                [pairs[place] for place in places],
                self._attention_bytes,
                lambda some: source_attention(self.model, [(each.source, each.target) for each in some], layer, head),
            )
            found.update(zip(places, weights, strict=True))
        return [found[place] for place in range(len(pairs))]

    def without_weights(self) -> list[str]:
        """As `AttentionEngine.without_weights`."""
        return without_weights(self.model)

    def _attention_bytes(self, pairs: Sequence[Pair], free: int) -> int:
        """Those of the weights of all attentions, as many heads each as is usual, which are recorded together."""
        length = max(max(len(pair.source), len(pair.target)) for pair in pairs) + 1
        attentions = sum(isinstance(module, Attention) for _, module in self.model.named_modules())
        return 4 * len(pairs) * attentions * _USUAL_HEADS * length * length


def _batches(rows: Sequence[Row], batch_size: int) -> list[Sequence[int]]:
    """The places of rows that are decoded together, of like length. The batch of the first row comes first."""
    together: dict[Hashable, list[int]] = {}
    for place, row in enumerate(rows):
        together.setdefault(_shared(row), []).append(place)
    batches: list[Sequence[int]] = []
    for places in together.values():
        batches += _chunks(sorted(places, key=lambda place: len(rows[place].source)), batch_size)
    return sorted(batches, key=min)


def _shared(row: Row) -> Hashable:
    """What rows of one batch have in common, because they would else wait for the widest, or for attention."""
    decoding = row.decoding
    if isinstance(decoding, Sampling):
        return "sampling", decoding.samples
    more = _hypotheses(row) - decoding.beam
    language_model = decoding.fusion and decoding.fusion.language_model
    # widths up to twice one another
    return "search", decoding.beam, decoding.attends, decoding.diversity, language_model, more.bit_length()


def _hypotheses(row: Row) -> int:
    """That are held of a row at one time."""
    decoding = row.decoding
    return decoding.samples if isinstance(decoding, Sampling) else constrained_beam_size(decoding.beam, row.constraints)


def _margin(decoding: Decoding) -> int:
    """Of the length limit, in tokens, as far as it is used."""
    config = decoding.config if isinstance(decoding, Sampling) else decoding
    return min(config.length_margin, _USUAL_MARGIN)


def _chunks(places: Sequence[int], size: int) -> list[Sequence[int]]:
    return [places[start : start + size] for start in range(0, len(places), size)]


def _too_big(line: Row | Pair, needed: int | None, free: int) -> ResourceError:
    """needed: None where it could not be found out."""
    tokens = len(line.source) + (len(line.target) if isinstance(line, Pair) else 0)
    about = "" if needed is None else f"about {needed / 2**20:,.0f} MiB needed, "
    return ResourceError(
        f"line {line.number} ({tokens} tokens) does not fit the memory: {about}{free / 2**20:,.0f} MiB free. "
        "Split the line into sentences, use a smaller beam, or free memory"
    )
