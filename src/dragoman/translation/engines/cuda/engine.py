"""`CudaEngine`: the engine that searches on a GPU, in half precision, with a captured decoding step."""

import copy
from collections.abc import Iterator, Sequence
from math import inf

import torch

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import LengthLimits
from dragoman.models.seq2seq import Seq2Seq
from dragoman.models.transformer import TransformerDecoder
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.feedforward import FeedForward
from dragoman.text.symbols import EOS
from dragoman.text.tokenizers import Tokenizers
from dragoman.translation.engine import Engine, Pair, Row
from dragoman.translation.engines.cuda.session import CudaRequest, CudaSession, Model
from dragoman.translation.engines.cuda.slots import MOST_FORBIDDEN
from dragoman.translation.engines.native.request import NativeRequest
from dragoman.translation.request import Sampling


class CudaEngine:
    """Runs greedy and beam search of Transformers on a GPU; pairs are scored by another engine.

    Weights are converted once. Scores are summed in float32. Sentences that are completed make room for the next, and
    the device is waited for once in a few tokens. In half precision some translations differ from those of float32.
    """

    def __init__(
        self, model: Seq2Seq, tokenizers: Tokenizers, reference: Engine, precision: torch.dtype = torch.float16
    ) -> None:
        """model: on its device; it is copied if it has another precision. reference: scores pairs, and searches rows
        again whose log-probabilities leave the range of half precision.

        Raises ConfigError for a model whose decoding step cannot be captured.
        """
        if (reason := unsupported(model)) is not None:
            raise ConfigError(f"the cuda engine does not decode this model: {reason}")
        own = model if precision == torch.float32 else copy.deepcopy(model).to(precision)
        self._model = Model(own, tokenizers.target.size)
        self._limits, self._tokenizers, self._reference = model.limits, tokenizers, reference
        self._precision, self._overflowed = precision, False

    @property
    def limits(self) -> LengthLimits:
        """The model's limits."""
        return self._limits

    def refusal(self, row: Row) -> str | None:
        """A reason for everything but plain beam search without replacement of unknown words."""
        if isinstance(row.decoding, Sampling):
            return "the cuda engine does not sample: the torch engine does"
        if row.constraints:
            return "the cuda engine has no constraints: the torch engine searches with them"
        if others := row.decoding.beyond("minimum_length", "minimum_factor", "unknown"):
            return f"the cuda engine has no {', '.join(others)}: the torch engine searches with it"
        if len(row.decoding.forbid) > MOST_FORBIDDEN:
            return f"the cuda engine forbids {MOST_FORBIDDEN} tokens at most: the torch engine searches with more"
        if max(row.decoding.forbid, default=0) >= self._tokenizers.target.size:
            return "the cuda engine has no forbidden tokens beyond the vocabulary: the torch engine reports them"
        if not self._tokenizers.target.lossless and (
            row.decoding.unknown is None or row.decoding.unknown.kind != "forbid"
        ):
            return "the cuda engine does not replace unknown words, torch does; --unknown forbid leaves them out"
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """As `Engine.hypotheses`; rows are started by decreasing length."""
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place].source))
        with self.session([rows[place] for place in order], batch_size) as session:
            while found := session.completed(inf):
                for number, hypotheses in found:
                    yield order[number], hypotheses

    def session(self, rows: Sequence[Row], batch_size: int) -> CudaSession:
        """A session that starts with these rows and admits others, as requests. batch_size: as in `hypotheses`."""
        return CudaSession(self._model, [self.request(row) for row in rows], batch_size, self._again)

    def request(self, row: Row) -> CudaRequest:
        """A row that is not refused, with its search."""
        assert isinstance(row.decoding, SearchConfig)
        source, prefix = (*row.source, EOS), row.prefix
        positions = self._limits.target.positions
        return CudaRequest(row, NativeRequest.of(source, prefix.ids, row.decoding, positions, prefix.unknown))

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """As `Engine.scores`, by the reference."""
        return self._reference.scores(pairs, batch_size)

    def _again(self, request: CudaRequest) -> list[Hypothesis]:
        """The reference's hypotheses."""
        if not self._overflowed and self._precision != torch.float32:
            self._overflowed = True
            kind = str(self._precision).removeprefix("torch.")
            warn(
                f"a sentence leaves the range of {kind} and is searched in float32; --precision float32 searches all so"
            )
        ((_, hypotheses),) = self._reference.hypotheses([request.row], 1)
        return hypotheses


def unsupported(model: object) -> str | None:
    """What of a model has no decoding step of fixed shapes; None if it has one."""
    if not isinstance(model, Seq2Seq):
        return f"it is a {type(model).__name__}"
    if model.vectors is not None:
        return "its source are vectors"
    decoder = model.decoder
    if not isinstance(decoder, TransformerDecoder):
        return f"its decoder is a {type(decoder).__name__}"
    for layer in decoder.layers:
        if not isinstance(layer.feedforward, FeedForward):
            return f"its decoder has a {type(layer.feedforward).__name__}"
        for attention in (layer.self_attention, layer.cross_attention):
            if type(attention) is not SoftAttention:
                return f"its decoder has {type(attention).__name__}"
            if reason := _attention_unsupported(attention):
                return reason
    return None


def _attention_unsupported(attention: SoftAttention) -> str | None:
    config, relation = attention.config, attention.relation
    if not attention.scorer.is_dot_product:
        return f"its decoder's attention compares by {config.scorer.kind}"
    if config.normaliser != "softmax" or not config.projections:
        return "its decoder's attention is not projected, or not normalised by softmax"
    if relation is not None and (relation.acts_on_scores or relation.acts_on_values):
        return f"its decoder has {type(relation).__name__} positions inside attention"
    return None
