"""`TorchEngine`: the reference engine, which computes with a PyTorch model in batches that fit into memory."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch

from dragoman.base.progress import Progress
from dragoman.data.batches.batch import collate, pad
from dragoman.decode.beam.exact_search import BLOCK
from dragoman.decode.constraints.constraint import Constraints, Edges, constrained_beam_size, tokens_needed, word_edges
from dragoman.decode.decoding import Decoding, Sampling
from dragoman.decode.forced import CHUNK, force
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Rule
from dragoman.decode.sampling import sample, uniforms
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.decode.shortlist import ShortlistedDecoder
from dragoman.engines.engine import Pair, Row
from dragoman.engines.torch.batches import FittingBatches
from dragoman.engines.torch.fused_language_models import FusedLanguageModels
from dragoman.engines.unknown_words import UnknownWords
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
from dragoman.models.interface import Decoder, LengthLimits, Memory, SourceModel, source_mask
from dragoman.nn.attention.interface import Attention
from dragoman.text.symbols import EOS
from dragoman.text.tokenizers import Tokenizers

_SEARCH_LOGITS, _SAMPLING_LOGITS = 3, 10
"""Number of copies of a step's logits that exist at the same time, in float32 units. Sampling sums in float64."""

_EXPECTED_MARGIN = 64
"""The usual maximum number of tokens by which an output exceeds its source; the limit may be larger."""

_EXPECTED_HEADS = 16
"""The usual maximum number of heads; a batch with more heads that does not fit into memory is split."""


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
        self._footprint: Footprint | None = None

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
        batches = FittingBatches(rows, _batches(rows, batch_size), self._decoding_bytes, self._device)
        is_exact = self._precision == torch.float32
        for indices, batch in batches:
            narrow = nullcontext() if is_exact else torch.autocast(self._device.type, self._precision)
            try:
                with torch.inference_mode(), narrow:
                    results = self._decode(batch)
            except (MemoryError, RuntimeError) as error:
                batches.halve(error)
                continue
            yield from zip(indices, results, strict=True)

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`; a batch that does not fit into memory is halved."""
        scores = [0.0] * len(pairs)
        batches = FittingBatches(pairs, _pair_batches(pairs, batch_size), self._scoring_bytes, self._device)
        with Progress("Scoring", "pairs", len(pairs)) as progress:
            for indices, batch in batches:
                try:
                    with torch.inference_mode():
                        results = self._score(batch)
                except (MemoryError, RuntimeError) as error:
                    batches.halve(error)
                    continue
                for index, score in zip(indices, results, strict=True):
                    scores[index] = score
                progress.update(progress.done + len(indices))
        return scores

    def _decode(self, rows: Sequence[Row]) -> list[list[Hypothesis]]:
        """Return the hypotheses of rows that are decoded in one batch."""
        tokens, mask = (tensor.to(self._device) for tensor in pad([row.source for row in rows], after=(EOS,)))  # (B, S)
        memory = self.model.encode(tokens, mask)
        samplings = [row.decoding for row in rows if isinstance(row.decoding, Sampling)]
        if samplings:
            return self._sample(memory, samplings, rows)
        decoder, unknown_words = self.model.decoder, self._unknown_words
        configs = unknown_words.configs(decoder, memory, rows)
        searched = self._shortlisted(memory, rows)
        prompts, constraints = self._prompts(searched, memory, configs, rows)
        rules: list[Rule] = []
        if (fusion := self._language_models.rule([config.fusion for config in configs])) is not None:
            prompts, rules = fusion.limit_lengths(prompts), [fusion]
        found = search(searched, prompts, configs, rules, constraints)
        return unknown_words.replaced(decoder, memory, rows, found)

    def _shortlisted(self, memory: Memory, rows: Sequence[Row]) -> Decoder:
        """Return a decoder for the shortlists of the rows, or the model's own if no row has a shortlist."""
        shortlists = [row.shortlist for row in rows]
        if all(each is None for each in shortlists):
            return self.model.decoder
        device = source_mask(memory).device
        return ShortlistedDecoder(self.model.decoder, shortlists, self._tokenizers.target.size, device)

    def _prompts(
        self, decoder: Decoder, memory: Memory, configs: Sequence[SearchConfig], rows: Sequence[Row]
    ) -> tuple[Prompts, Constraints | None]:
        prefixes = [row.prefix.ids for row in rows]
        if not any(row.constraints for row in rows):
            return Prompts.of(decoder, memory, configs, prefixes), None
        minimum_lengths = [tokens_needed(row.constraints) for row in rows]
        constraints = Constraints([row.constraints for row in rows], self._edges)
        return Prompts.of(decoder, memory, configs, prefixes, minimum_lengths), constraints

    @cached_property
    def _edges(self) -> Edges:
        return word_edges(self._tokenizers.target)

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
        if self._footprint is None:
            self._footprint = measure_footprint(self.model, min(length, SHORT_TRIAL), training=False)
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


class AttentionTorchEngine(TorchEngine):
    """The engine of a single model, which also returns attention weights (ensembles have no attention weights)."""

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """See `AttentionEngine.attention`."""
        return attention_maps(self.model, self._tokenizers, target, source)

    def source_attention(self, pairs: Sequence[Pair], batch_size: int, choice: AttentionChoice) -> list[np.ndarray]:
        """See `AttentionEngine.source_attention`; a batch that does not fit into memory is halved."""
        maps: dict[int, np.ndarray] = {}
        batches = FittingBatches(pairs, _pair_batches(pairs, batch_size), self._attention_bytes, self._device)
        for indices, batch in batches:
            try:
                with torch.inference_mode():
                    weights = source_attention(self.model, [(each.source, each.target) for each in batch], choice)
            except (MemoryError, RuntimeError) as error:
                batches.halve(error)
                continue
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


def _pair_batches(pairs: Sequence[Pair], batch_size: int) -> list[Sequence[int]]:
    """Return the indices of the pairs of each batch; the pairs of a batch have similar lengths."""
    order = sorted(range(len(pairs)), key=lambda index: (len(pairs[index].target), len(pairs[index].source)))
    return _chunks(order, batch_size)


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
