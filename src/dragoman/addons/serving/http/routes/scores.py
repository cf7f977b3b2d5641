"""The route `/v1/score`, which returns log-probabilities of texts and translations."""

from functools import partial
from itertools import chain
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.http.gate import Gate, KeyFields
from dragoman.addons.serving.http.requests import Error, check_texts, describe_route, while_connected
from dragoman.addons.serving.service.scoring import Pair, ScoreJob, choose_scorer
from dragoman.addons.serving.service.service import Service


class TranslationField(BaseModel):
    """A text and its translation."""

    model_config = ConfigDict(extra="forbid")

    text: str
    translation: str


class ScoreFields(KeyFields):
    """One or several texts, or texts with translations, to score. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")

    text: str | TranslationField | list[str | TranslationField] = Field(
        description="A text, or a list. For a translation model, a text is a pair {text, translation}; for a language "
        "model or a masked language model, a string."
    )
    model: str | None = Field(None, description="Name of the model; null: that of the languages, or the only one.")
    source: str | None = Field(None, description="Code of the source language, to choose a translation model.")
    target: str | None = Field(None, description="Code of the target language, to choose a translation model.")


class ScoresV1(BaseModel):
    """The scores of all texts, in order.

    Each has `log_probability` (natural, of the whole text with its end), `tokens`, and `unknown`, the number of unknown
    tokens; a text also has `words`, `bytes`, and the perplexities `per_token`, `per_word` and `per_byte`, null if
    infinite. The score of a masked language model is the pseudo-log-likelihood.
    """

    model: str
    scores: list[dict[str, Any]]


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """Return the route POST /v1/score."""
    router, limits = APIRouter(prefix="/v1", tags=["dragoman"]), config.limits
    description = describe_route(ScoreFields, form=False)
    description["responses"] = description["responses"] | {404: {"model": Error, "description": "no such model"}}

    @router.post("/score", response_model=ScoresV1, **description)
    async def score(request: Request) -> Response:
        """Return the log-probabilities of texts, or of translations given their sources."""
        fields, caller = await gate.enter(request, ScoreFields, translates=True)
        given = fields.text if isinstance(fields.text, list) else [fields.text]
        texts = [each if isinstance(each, str) else Pair(each.text, each.translation) for each in given]
        strings = [[each] if isinstance(each, str) else [each.text, each.translation] for each in given]
        check_texts(list(chain.from_iterable(strings)), limits, "text", len(given))
        choose = partial(choose_scorer, fields.model, service.models, service.directions)
        model = choose(fields.source, fields.target)
        target = None if fields.target is None else service.directions.match(fields.target)
        async with while_connected(request):
            scores = await service.score(ScoreJob(model, texts, target, caller.reserve, caller.name))
        response = ScoresV1(model=model.name, scores=scores)
        return Response(response.model_dump_json(), media_type="application/json")

    return router
