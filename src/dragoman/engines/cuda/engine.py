"""`CudaEngine`: the engine that searches on a GPU, in half precision, with a captured decoding step."""

import copy
from collections.abc import Iterator, Sequence

import torch

from dragoman.base.cancellation import check_cancelled
from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.decode.decoding import Sampling
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.cuda.session import CudaRequest, CudaSession, Model
from dragoman.engines.cuda.slots import MAX_FORBIDDEN
from dragoman.engines.engine import Engine, Pair, Row
from dragoman.engines.native.request import NativeRequest
from dragoman.models.families.transformer import TransformerDecoder
from dragoman.models.interface import LengthLimits
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.feedforward import FeedForward
from dragoman.text.symbols import EOS
from dragoman.text.tokenizers import Tokenizers

_POLL_SECONDS = 0.05
"""Time in seconds between two checks for cancellation."""


class CudaEngine:
    """Runs greedy and beam search of Transformers on a GPU; pairs are scored by another engine.

    Weights are converted once. Scores are summed in float32. Completed sentences are replaced by queued sentences, and
    the host synchronises with the device only once every few tokens. In half precision, some translations differ from
    float32 translations.
    """

    def __init__(
        self, model: Seq2Seq, tokenizers: Tokenizers, reference: Engine, precision: torch.dtype = torch.float16
    ) -> None:
        """model: a model on its device, which is copied if its precision differs from `precision`.

        reference: the engine that scores pairs and repeats the search of rows whose log-probabilities exceed the range
        of half precision.

        Raises ConfigError for a model whose decoding step cannot be captured.
        """
        if (reason := unsupported(model)) is not None:
            raise ConfigError(f"the cuda engine cannot decode this model: {reason}")
        converted = model if precision == torch.float32 else copy.deepcopy(model).to(precision)
        self._model = Model(converted, tokenizers.target.size)
        self._limits, self._tokenizers, self._reference = model.limits, tokenizers, reference
        self._precision, self._overflowed = precision, False

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return str(self._precision).removeprefix("torch.")

    @property
    def limits(self) -> LengthLimits:
        """The model's limits."""
        return self._limits

    def refusal(self, row: Row) -> str | None:
        """Return why a row is not supported; None for beam search without other rules or unknown-word replacement."""
        if isinstance(row.decoding, Sampling):
            return "the cuda engine does not support sampling, but the torch engine does"
        if row.constraints:
            return "the cuda engine does not support constraints, but the torch engine does"
        if others := row.decoding.beyond("minimum_length", "minimum_factor", "unknown"):
            return f"the cuda engine does not support {', '.join(others)}, but the torch engine does"
        if len(row.decoding.forbid) > MAX_FORBIDDEN:
            return (
                f"the cuda engine supports at most {MAX_FORBIDDEN} forbidden tokens, but the torch engine supports more"
            )
        if max(row.decoding.forbid, default=0) >= self._tokenizers.target.size:
            return "a forbidden token is not in the vocabulary, which the torch engine reports as an error"
        if not self._tokenizers.target.lossless and (
            row.decoding.unknown is None or row.decoding.unknown.kind != "forbid"
        ):
            return (
                "the cuda engine does not replace unknown words, but the torch engine does "
                "(--unknown forbid omits unknown words)"
            )
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`; rows are started in order of decreasing length."""
        order = sorted(range(len(rows)), key=lambda index: -len(rows[index].source))
        with self.session([rows[index] for index in order], batch_size) as session:
            while session.in_progress:
                check_cancelled()
                for number, hypotheses in session.completed(_POLL_SECONDS):
                    yield order[number], hypotheses

    def session(self, rows: Sequence[Row], batch_size: int) -> CudaSession:
        """Open a session that starts with `rows` and admits further requests. batch_size: as in `hypotheses`."""
        return CudaSession(self._model, [self.request(row) for row in rows], batch_size, self._search_with_pytorch)

    def request(self, row: Row) -> CudaRequest:
        """Return the request for a supported row."""
        assert isinstance(row.decoding, SearchConfig)
        source, prefix = (*row.source, EOS), row.prefix
        positions = self._limits.target.positions
        return CudaRequest(row, NativeRequest.of(source, prefix.ids, row.decoding, positions, unknown=prefix.unknown))

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`; computed by the reference engine."""
        return self._reference.scores(pairs, batch_size)

    def _search_with_pytorch(self, request: CudaRequest) -> list[Hypothesis]:
        """Return the hypotheses of the reference engine for a request. Warns at the first call."""
        if not self._overflowed and self._precision != torch.float32:
            self._overflowed = True
            kind = str(self._precision).removeprefix("torch.")
            warn(
                f"a sentence exceeds the range of {kind} and is searched again in float32 (--precision float32 "
                "translates all sentences in float32)"
            )
        ((_, hypotheses),) = self._reference.hypotheses([request.row], 1)
        return hypotheses


def unsupported(model: object) -> str | None:
    """Return why a model cannot be decoded with fixed shapes, with its setting; None if it can be."""
    if not isinstance(model, Seq2Seq):
        return "it is not an encoder–decoder"
    if model.vectors is not None:
        return "its source consists of vectors"
    decoder = model.decoder
    if not isinstance(decoder, TransformerDecoder):
        return "model.decoder.kind is not transformer"
    for layer in decoder.layers:
        if not isinstance(layer.feedforward, FeedForward):
            return "model.decoder.experts is set"
        both = {"attention": layer.self_attention, "cross_attention": layer.cross_attention}
        for name, attention in both.items():
            if type(attention) is not SoftAttention:
                return f"model.decoder.{name}.kind is not soft"
            if reason := _attention_unsupported(attention, f"model.decoder.{name}"):
                return reason
    return None


def _attention_unsupported(attention: SoftAttention, setting: str) -> str | None:
    config, relation = attention.config, attention.relation
    if attention.kv_heads < attention.heads:
        return f"heads share keys and values ({setting}.kv_heads)"
    if not attention.scorer.is_dot_product:
        return f"{setting}.scorer.kind is {config.scorer.kind}"
    if config.normaliser != "softmax":
        return f"{setting}.normaliser is {config.normaliser}"
    if not config.projections:
        return f"{setting}.projections is false"
    if relation is not None and (relation.acts_on_scores or relation.acts_on_values):
        return "its relative positions act on scores or values (model.positions.kind)"
    return None
