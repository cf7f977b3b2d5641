"""`score`: log-probabilities of texts and of translations, by any model of a server that can compute them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.addons.serving.access.quota import Reservation
from dragoman.addons.serving.errors import NotFound, RequestError
from dragoman.addons.serving.models.served_language_models import ServedLanguageModel
from dragoman.addons.serving.models.served_models import Directions, ServedModel
from dragoman.addons.serving.models.served_predictors import ServedPredictor
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.inference.abilities import SupportsScore, SupportsScorePairs
from dragoman.text.words import count_words

Scorer = ServedModel | ServedLanguageModel | ServedPredictor


@dataclass(frozen=True)
class Pair:
    """A text and its translation."""

    text: str
    translation: str


@dataclass(frozen=True)
class ScoreJob:
    """Texts, or texts and their translations, to score.

    model: the model. target: the target language of a translation model with several, or None. reserve: reserves tokens
    of the client's quota; raises TooManyRequests. client: its name.
    """

    model: Scorer
    texts: Sequence[str | Pair]
    target: str | None
    reserve: Callable[[int], Reservation]
    client: str

    def score(self) -> list[dict[str, Any]]:
        """Return the score of each text as JSON types, in order.

        Raises RequestError for a text of the wrong form, and for one that exceeds the model's maximum length.
        """
        try:
            return self._score_pairs() if isinstance(self.model, ServedModel) else self._score_texts()
        except (ConfigError, DataError, ModelError) as error:
            raise RequestError(f"Invalid request: text: {error}", "text") from None

    def count_tokens(self) -> int:
        """Return the number of tokens of all texts for the quota, which are counted as words."""
        whole = [f"{each.text} {each.translation}" if isinstance(each, Pair) else each for each in self.texts]
        return sum(map(count_words, whole))

    def _score_pairs(self) -> list[dict[str, Any]]:
        assert isinstance(self.model, ServedModel)
        translator = self.model.translator
        if not isinstance(translator, SupportsScorePairs) or "score" not in translator.kind.abilities:
            raise RequestError(f"{self.model.name} cannot score translations", "model")
        pairs = [each for each in self.texts if isinstance(each, Pair)]
        if len(pairs) < len(self.texts):
            raise RequestError(f"Invalid request: text: {self.model.name} scores pairs {{text, translation}}", "text")
        to = None if self.target is None else self.model.tag_for(self.target)
        scores = translator.score([each.text for each in pairs], [each.translation for each in pairs], to=to)
        return [
            {"log_probability": each.log_probability, "tokens": each.tokens, "unknown": each.unknown} for each in scores
        ]

    def _score_texts(self) -> list[dict[str, Any]]:
        assert not isinstance(self.model, ServedModel)
        model = self.model.model if isinstance(self.model, ServedLanguageModel) else self.model.choose(None)
        if not isinstance(model, SupportsScore) or "score" not in model.kind.abilities:
            raise RequestError(f"{self.model.name} cannot score texts", "model")
        texts = [each for each in self.texts if isinstance(each, str)]
        if len(texts) < len(self.texts):
            raise RequestError(f"Invalid request: text: {self.model.name} scores texts, not pairs", "text")
        return [each.as_json() for each in model.score(texts)]


def choose_scorer(
    name: str | None, models: Sequence[Scorer], directions: Directions, source: str | None, target: str | None
) -> Scorer:
    """Return the model that scores: the one with a name, or that of a direction, or the only one.

    Raises NotFound for an unknown name and an unserved direction, RequestError if there are several.
    """
    if name is not None:
        named = [each for each in models if each.name == name]
        if not named:
            listed = ", ".join(each.name for each in models)
            raise NotFound(f"there is no model of this name: this server has {listed}", "model")
        return named[0]
    if target is not None:
        found = [
            each
            for each in directions.models
            if directions.match(target) in each.targets and source in (None, each.source)
        ]
        if not found:
            raise NotFound(f"no model translates into {target}", "target")
        return found[0]
    if len(models) != 1:
        listed = ", ".join(each.name for each in models)
        raise RequestError(f"Invalid request: model: this server has several models: name one of {listed}", "model")
    return models[0]
