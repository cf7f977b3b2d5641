"""`TranslationInspector`: the attention weights of a model while a translation is predicted."""

from dragoman.base.errors import DataError, LineError
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Engine, attention_engine
from dragoman.figures.inspection import Inspection, build_inspection, check_not_blank, check_token_count
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.request import Request
from dragoman.models.attention_weights import AttentionMap


class TranslationInspector:
    """Inspects translations with the engine and the codec of a translator. target: None for the best translation."""

    def __init__(self, engine: Engine, codec: Codec) -> None:
        self._engine, self._codec = engine, codec

    def attention(self, source: str, target: str | None, request: Request) -> list[AttentionMap]:
        """Return the weights of every layer and head. Raises ConfigError if the engine does not expose them."""
        engine = attention_engine(self._engine)
        (pair,) = self._codec.encode_pairs([source], [target or ""], request.tags)
        tokens = pair.target if target is not None else self._best(source, request).tokens
        return engine.attention(pair.source, tokens)

    def inspect(self, source: str, target: str | None, request: Request) -> Inspection:
        """Return the tokens and all attention weights.

        Raises ConfigError if the model has no attention or the engine does not expose its weights, DataError for a text
        that is blank or too long.
        """
        engine = attention_engine(self._engine)
        check_not_blank(source, "text")
        if target is not None:
            check_not_blank(target, "target")
        try:
            (pair,) = self._codec.encode_pairs([source], [target or ""], request.tags)
        except LineError as error:
            raise DataError(f"the text is too long: {error.reason}") from None
        check_token_count(len(pair.source))
        if target is None:
            best = self._best(source, request)
            target, pair = self._codec.decode(best).text, pair._replace(target=best.tokens)
        check_token_count(len(pair.target))
        return build_inspection(source, target, engine.attention(pair.source, pair.target), engine.without_weights())

    def _best(self, source: str, request: Request) -> Hypothesis:
        rows = self._codec.encode_rows([(source, request)], [1])
        ((_, hypotheses),) = self._engine.hypotheses(rows, 1)
        return hypotheses[0]
