"""`TorchEngine`: the reference engine, which computes with a PyTorch model in batches that fit into memory."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ResourceError
from dragoman.base.machine.memory import available_memory, is_out_of_memory
from dragoman.base.progress import Progress
from dragoman.data.batches.batch import collate, pad
from dragoman.decode.beam.exact_search import BLOCK
from dragoman.decode.constraints.constraint import constrained_beam_size
from dragoman.decode.decoding import Decoding, Sampling
from dragoman.decode.forced import CHUNK, force
from dragoman.decode.prompts import Prompts
from dragoman.decode.sampling import sample, uniforms
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Pair, Row
from dragoman.engines.fusion import FusedLanguageModels
from dragoman.engines.unknown_words import Sentence, UnknownWords
from dragoman.models.attention_weights import (
    AttentionChoice,
    AttentionMap,
    attention_maps,
    source_attention,
    without_weights,
)
from dragoman.models.description.footprint import (
    SHORT_TRIAL,
    Footprint,
    evaluate_polynomial,
    measure_footprint,
    refine_footprint,
)
from dragoman.models.interface import LengthLimits, Memory, SourceModel
from dragoman.nn.attention.interface import Attention
from dragoman.text.symbols import EOS
from dragoman.text.tokenizers import Tokenizers

_SEARCH_LOGITS, _SAMPLING_LOGITS = 3, 10
"""Number of copies of a step's logits that exist at the same time, in float32 units. Sampling sums in float64."""

_EXPECTED_MARGIN = 64
"""The usual maximum number of tokens by which an output exceeds its source; the limit may be larger."""

_EXPECTED_HEADS = 16
"""The usual maximum number of heads; a batch with more heads that does not fit into memory is split."""

Item = TypeVar("Item", Row, Pair)
Result = TypeVar("Result")


class TorchEngine:
    """Searches, samples and scores with any encoder–decoder model, including ensembles.

    The rows of a batch have similar lengths. Rows to be searched share a batch if they have the same beam size,
    diversity groups and fused language model, and if either all or none of them need attention weights. Rows to be
    sampled share a batch if they have the same number of samples. All other settings may differ from row to row.
    """

    def __init__(
        self,
        model: SourceModel,
        tokenizers: Tokenizers,
        device: torch.device,
        precision: torch.dtype = torch.float32,
    ) -> None:
        """model: a model on `device`, which is switched to evaluation mode.

        precision: the dtype of matrix products in searches and samples, as in training. All sums, normalisations, and
        the scores of given pairs are computed in float32.
        """
        self.model = model.eval()
        self._tokenizers, self._device, self._precision = tokenizers, device, precision
        self._unknown_words = UnknownWords(tokenizers)
        self._language_models = FusedLanguageModels(tokenizers, device)

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return str(self._precision).removeprefix("torch.")

    @property
    def device(self) -> torch.device:
        """The device on which the engine computes."""
        return self._device

    @property
    def limits(self) -> LengthLimits:
        """The model's limits."""
        return self.model.limits

    def refusal(self, row: Row) -> str | None:
        """Return None: every request is supported."""
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`; a batch that does not fit into memory is halved."""
        is_exact = self._precision == torch.float32
        for indices in until_cancelled(_batches(rows, batch_size)):
            with nullcontext() if is_exact else torch.autocast(self._device.type, self._precision):
                results = self._compute_in_parts([rows[index] for index in indices], self._decoding_bytes, self._decode)
            yield from zip(indices, results, strict=True)

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`; a batch that does not fit into memory is halved."""
        order = sorted(range(len(pairs)), key=lambda index: (len(pairs[index].target), len(pairs[index].source)))
        scores = [0.0] * len(pairs)
        with Progress("Scoring", "pairs", len(pairs)) as progress:
            for indices in _chunks(order, batch_size):
                results = self._compute_in_parts([pairs[index] for index in indices], self._scoring_bytes, self._score)
                for index, score in zip(indices, results, strict=True):
                    scores[index] = score
                progress.update(progress.done + len(indices))
        return scores

    def _compute_in_parts(
        self,
        items: Sequence[Item],
        estimate_bytes: Callable[[Sequence[Item], int], int],
        compute: Callable[[Sequence[Item]], list[Result]],
    ) -> list[Result]:
        """Return the results of `compute` for all items, which are halved until they fit into memory.

        estimate_bytes: estimates the memory for computing some items, given the number of free bytes.
        """
        free, needed = self._free_bytes(), None
        try:
            needed = estimate_bytes(items, free)  # may run the model for a measurement, which can exhaust memory too
            if needed <= free:
                with torch.inference_mode():
                    return compute(items)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        # outside `except`, whose traceback would keep the tensors of the failed attempt alive
        if len(items) == 1:
            raise _too_large(items[0], needed, free)
        middle = len(items) // 2
        halves = items[:middle], items[middle:]
        return [result for half in halves for result in self._compute_in_parts(half, estimate_bytes, compute)]

    def _decode(self, rows: Sequence[Row]) -> list[list[Hypothesis]]:
        """Return the hypotheses of rows that are decoded in one batch."""
        tokens, mask = (tensor.to(self._device) for tensor in pad([row.source for row in rows], after=(EOS,)))  # (B, S)
        memory = self.model.encode(tokens, mask)
        samplings = [row.decoding for row in rows if isinstance(row.decoding, Sampling)]
        if samplings:
            return self._sample(memory, samplings, rows)
        sentences = [
            Sentence(
                row.text, row.decoding, row.prefix.ids, row.prefix.unknown, row.tags, row.constraints, row.shortlist
            )
            for row in rows
            if isinstance(row.decoding, SearchConfig)
        ]
        fusion = self._language_models.rule([sentence.config.fusion for sentence in sentences])
        return self._unknown_words.search(self.model.decoder, memory, sentences, fusion)

    def _sample(self, memory: Memory, samplings: Sequence[Sampling], rows: Sequence[Row]) -> list[list[Hypothesis]]:
        configs = [sampling.config for sampling in samplings]
        seeds = [
            (sampling.seed, row.number, *((0, row.part) if row.part else ()))  # first parts draw as whole lines do
            for sampling, row in zip(samplings, rows, strict=True)
        ]
        prompts = Prompts.of(self.model.decoder, memory, configs, [row.prefix.ids for row in rows])
        numbers = uniforms(seeds, samplings[0].samples, int((prompts.limits - prompts.prefix_lengths).max()))
        drawn = sample(self.model.decoder, prompts, configs, numbers)
        return [
            [replace(each, unknown=row.prefix.unknown) for each in samples]
            for row, samples in zip(rows, drawn, strict=True)
        ]

    def _score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the scores of pairs that are computed in one batch."""
        batch = collate([pair.source for pair in pairs], [pair.target for pair in pairs], range(len(pairs)))
        batch = batch.to(self._device)
        memory = self.model.encode(batch.source, batch.source_mask)
        scores = force(self.model.decoder, memory, batch.inputs, batch.labels, batch.target_mask)  # (B, T)
        return [float(score) for score in scores.double().sum(1)]

    def _decoding_bytes(self, rows: Sequence[Row], free: int) -> int:
        """Estimate the peak memory in bytes for decoding rows in float32."""
        length = max(len(row.source) for row in rows) + 1
        self._footprint = refine_footprint(self._footprint, self.model, length, training=False, free=free)
        decoding = rows[0].decoding
        hypotheses = max(map(_hypotheses, rows))
        logits = _SAMPLING_LOGITS if isinstance(decoding, Sampling) else _SEARCH_LOGITS
        # outputs are rarely longer than this limit; if longer outputs do not fit into memory, the batch is split
        limit = max(length, *(len(row.prefix.ids) for row in rows)) + max(_margin(row.decoding) for row in rows)
        # two copies of the cache exist while it is reordered
        cache = 2 * hypotheses * evaluate_polynomial(self._footprint.cache, limit)
        memory = evaluate_polynomial(self._footprint.memory, length)
        vocabulary = logits * 4 * hypotheses * self._tokenizers.target.size
        return len(rows) * (max(evaluate_polynomial(self._footprint.encoding, length), cache + vocabulary) + memory)

    def _scoring_bytes(self, pairs: Sequence[Pair], free: int) -> int:
        """Estimate the bytes of the logits, which are computed in chunks."""
        logits = len(pairs) * (max(len(pair.target) for pair in pairs) + 1)
        return 12 * min(logits, CHUNK) * self._tokenizers.target.size

    @cached_property
    def _footprint(self) -> Footprint:
        return measure_footprint(self.model, SHORT_TRIAL, training=False)

    def _free_bytes(self) -> int:
        if self._device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self._device)
            return int(free + torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device))
        return available_memory()


class AttentionTorchEngine(TorchEngine):
    """The engine of a single model, which also returns attention weights (ensembles have no attention weights)."""

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """See `AttentionEngine.attention`."""
        return attention_maps(self.model, self._tokenizers, target, source)

    def source_attention(self, pairs: Sequence[Pair], batch_size: int, choice: AttentionChoice) -> list[np.ndarray]:
        """See `AttentionEngine.source_attention`; a batch that does not fit into memory is halved."""
        order = sorted(range(len(pairs)), key=lambda index: (len(pairs[index].target), len(pairs[index].source)))
        maps: dict[int, np.ndarray] = {}
        for indices in until_cancelled(_chunks(order, batch_size)):
            weights = self._compute_in_parts(
                [pairs[index] for index in indices],
                self._attention_bytes,
                lambda part: source_attention(self.model, [(each.source, each.target) for each in part], choice),
            )
            maps.update(zip(indices, weights, strict=True))
        return [maps[index] for index in range(len(pairs))]

    def without_weights(self) -> list[str]:
        """See `AttentionEngine.without_weights`."""
        return without_weights(self.model)

    def _attention_bytes(self, pairs: Sequence[Pair], free: int) -> int:
        """Estimate the bytes of the recorded attention weights, (rows, heads, T, S) per attention."""
        length = max(max(len(pair.source), len(pair.target)) for pair in pairs) + 1
        attentions = sum(isinstance(module, Attention) for _, module in self.model.named_modules())
        return 4 * len(pairs) * attentions * _EXPECTED_HEADS * length * length


def _batches(rows: Sequence[Row], batch_size: int) -> list[Sequence[int]]:
    """Return the row indices of each batch; rows have similar lengths. The batch of the first row comes first."""
    groups: dict[Hashable, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(_batch_key(row), []).append(index)
    batches: list[Sequence[int]] = []
    for indices in groups.values():
        batches += _chunks(sorted(indices, key=lambda index: len(rows[index].source)), batch_size)
    return sorted(batches, key=min)


def _batch_key(row: Row) -> Hashable:
    """Return the batching key of a row, so that no row waits for a wider beam, exact search or attention weights."""
    decoding = row.decoding
    if isinstance(decoding, Sampling):
        return "sampling", decoding.samples
    extra = _hypotheses(row) - decoding.beam
    language_model = decoding.fusion and decoding.fusion.language_model
    # the bit length groups sizes that differ by less than a factor of two
    settings = decoding.beam, decoding.exact > 0, decoding.needs_attention, decoding.diversity, language_model
    return "search", *settings, extra.bit_length()


def _hypotheses(row: Row) -> int:
    """Return the number of hypotheses of a row that exist at the same time."""
    decoding = row.decoding
    if isinstance(decoding, Sampling):
        return decoding.samples
    return max(constrained_beam_size(decoding.beam, row.constraints), BLOCK if decoding.exact else 0)


def _margin(decoding: Decoding) -> int:
    """Return the expected part of the length margin in tokens."""
    config = decoding.config if isinstance(decoding, Sampling) else decoding
    return min(config.length_margin, _EXPECTED_MARGIN)


def _chunks(indices: Sequence[int], size: int) -> list[Sequence[int]]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]


def _too_large(item: Row | Pair, needed: int | None, free: int) -> ResourceError:
    """Return the error for a single item that does not fit into memory.

    needed: the estimated bytes; None if they could not be estimated.
    """
    tokens = len(item.source) + (len(item.target) if isinstance(item, Pair) else 0)
    about = "" if needed is None else f"about {needed / 2**20:,.0f} MiB needed, "
    return ResourceError(
        f"line {item.number} ({tokens} tokens) does not fit into memory: {about}{free / 2**20:,.0f} MiB free. "
        "Split the line into sentences, use a smaller beam, or free memory"
    )
