"""`TranslationSubjects`: the translations of a translator, with their computation, at which `inspection` looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dragoman.base.errors import ConfigError, DataError, LineError, reject_options
from dragoman.data.batches.batch import pad
from dragoman.decode.decoding import Decoding
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Engine, Prefix
from dragoman.engines.router import visible_engine
from dragoman.inference.subject import (
    Subject,
    SubjectSettings,
    check_not_blank,
    check_one_text,
    check_token_count,
    target_subject,
)
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.models.attention_weights import END
from dragoman.nn.attention.heads import has_masked_heads
from dragoman.text.symbols import EOS, UNK
from dragoman.text.tokenizers import Tokenizers


@dataclass(frozen=True)
class TranslationSubjects:
    """The translations of texts by an engine. While heads are off, the visible engine searches for them.

    request: returns the request for a target language and tags, as `Translator.request`.
    """

    engine: Engine
    codec: Codec
    tokenizers: Tokenizers
    request: Callable[..., Request]

    def subject(self, text: str, settings: SubjectSettings) -> Subject:
        """Return the log-probability of a translation, by default of the best one.

        Raises DataError for a text that is blank or too long, and ConfigError as `visible_engine` and for settings of
        other models.
        """
        return self.of_target(check_one_text(text), settings.target, self._resolve(settings))

    def sequence(self, text: str, settings: SubjectSettings) -> "TranslationSequence":
        """Return the translation of a text as a sequence of tokens. Raises ConfigError as `subject` does."""
        return TranslationSequence(self, check_one_text(text), self._resolve(settings))

    def _resolve(self, settings: SubjectSettings) -> Request:
        reject_options({"--word": settings.word, "--mask": settings.mask}, "with a model that predicts labels")
        return self.request(to=settings.to, tags=settings.tags)

    def of_target(self, source: str, target: str | Sequence[int] | None, request: Request) -> Subject:
        """Return the log-probability of a translation.

        target: a text, its token ids, or None for the best translation. request: the tags of the source, and the search
        for the best translation. Raises the errors of `subject`.
        """
        engine, codec = visible_engine(self.engine), self.codec
        check_not_blank(source, "text")
        given = target if isinstance(target, str) else ""
        if isinstance(target, str):
            check_not_blank(target, "target")
        try:
            (pair,) = codec.encode_pairs([source], [given], request.tags)
            check_token_count(len(pair.source))
            if target is None:
                target = self.best_hypothesis(source, request).tokens
            ids = tuple(pair.target) if isinstance(target, str) else tuple(target)
            codec.check_length(1, pair.source, ids)
        except LineError as error:
            raise DataError(f"the text is too long: {error.reason}") from None
        return target_subject(
            engine.model,
            tuple(each.to(engine.device) for each in pad([pair.source], after=(EOS,))),
            ids,
            self.tokenizers.target.pieces,
            output="log-probability of the translation",
            source=source,
            target=target if isinstance(target, str) else self.tokenizers.target.decode(ids),
            tokens=(*self.tokenizers.source.pieces(pair.source), END),
            source_ids=pair.source,
            own=lambda: codec.decode(self.best_hypothesis(source, request)).text,
        )

    def best_hypothesis(self, source: str, request: Request, prefix: Prefix | None = None) -> Hypothesis:
        """Return the best translation of a text, or the best with a prefix.

        Raises DataError for a text that is blank or too long.
        """
        visible = visible_engine(self.engine)
        check_not_blank(source, "text")
        try:
            (row,) = self.codec.encode_rows([(source, request)], [1])
            self.codec.check_length(1, row.source, row.prefix.ids)
        except LineError as error:
            raise DataError(f"the text is too long: {error.reason}") from None
        engine = visible if has_masked_heads() else self.engine
        row = row if prefix is None else row._replace(prefix=prefix)
        ((_, hypotheses),) = engine.hypotheses([row], 1)
        return hypotheses[0]


@dataclass(frozen=True)
class TranslationSequence:
    """The translation of a text as an `OutputSequence`. The best one is found by the search of the request."""

    subjects: TranslationSubjects
    source: str
    request: Request

    @property
    def size(self) -> int:
        """See `OutputSequence.size`."""
        return self.subjects.tokenizers.target.size

    def encode(self, prefix: str) -> tuple[int, ...]:
        """See `OutputSequence.encode`. Trailing spaces are ignored."""
        return tuple(self.subjects.tokenizers.target.encode(prefix.rstrip()))

    def complete(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """See `OutputSequence.complete`."""
        return ids

    def subject(self, ids: tuple[int, ...]) -> Subject:
        """See `OutputSequence.subject`."""
        return self.subjects.of_target(self.source, ids, self.request)

    def best(self, ids: tuple[int, ...], ended: bool) -> Translation:
        """See `OutputSequence.best`."""
        tokenizer = self.subjects.tokenizers.target
        unknown = (f" {tokenizer.pieces((UNK,))[0]}",) * ids.count(UNK)
        if ended:
            hypothesis = _ended(self.subject(ids), self.request.decoding)
            return self.subjects.codec.decode(replace(hypothesis, unknown=unknown))
        best = self.subjects.best_hypothesis(self.source, self.request, Prefix(ids, unknown))
        return self.subjects.codec.decode(best)


def _ended(subject: Subject, decoding: Decoding) -> Hypothesis:
    """Return the hypothesis that consists of the prefix and the end symbol, as the search would score it."""
    assert isinstance(decoding, SearchConfig), "the request is that of a search"
    if decoding.coverage_penalty or decoding.fusion is not None:
        raise ConfigError(
            "a prefix with its end symbol has no score with search.coverage_penalty or search.fusion, which depend on "
            "the search: leave out the end symbol"
        )
    total = float(subject.values().sum())
    score = total / decoding.length_penalty.divisor(len(subject.terms))
    return Hypothesis(subject.target_ids, total, score, True)
