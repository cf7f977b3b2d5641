"""The routes `/v1/predict`, which predicts labels of texts, and `/v1/models`, which lists the models."""

from itertools import chain
from typing import Any, Self

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.errors import RequestError
from dragoman.addons.serving.http.gate import Gate, KeyFields
from dragoman.addons.serving.http.requests import ERRORS, Error, check_texts, describe_route, while_connected
from dragoman.addons.serving.service.prediction_queue import PredictedText, PredictionJob
from dragoman.addons.serving.service.service import Service
from dragoman.data.labelled.examples import LabelledText, Question, TaggedSentence
from dragoman.inference.prediction.examples import Text


class PairField(BaseModel):
    """A pair of texts."""

    model_config = ConfigDict(extra="forbid")

    text: str
    pair: str


class WordsField(BaseModel):
    """The words of a sentence, for a tagger.

    features: further columns that the model reads, such as parts of speech, each with one value per word.
    """

    model_config = ConfigDict(extra="forbid")

    words: list[str]
    features: list[list[str]] = []

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        if any(len(column) != len(self.words) for column in self.features):
            raise ValueError("each column of features has one value per word")
        return self


class QuestionField(BaseModel):
    """A question about a context."""

    model_config = ConfigDict(extra="forbid")

    question: str
    context: str


TextField = str | PairField | WordsField | QuestionField


class PredictFields(KeyFields):
    """One or several texts whose labels are predicted. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")

    text: TextField | list[TextField] = Field(
        description="A text, or a list. A text is a string, a pair {text, pair}, the words {words: […]} of a sentence, "
        "or a question {question, context}, depending on the task of the model."
    )
    model: str | None = Field(None, description="Name of the model; null: the only prediction model of the server.")
    task: str | None = Field(None, description="Name of the task, for a model with several tasks; null: the only task.")


class PredictedV1(BaseModel):
    """The predictions for all texts, in order.

    Each prediction is an object as `dragoman predict` writes it, with `label` and `probabilities`, `value`, `words` and
    `tags`, or `answer`. `cut` is the number of tokens at the end of a long text that were not read, if any. A text
    without a prediction has only `error`.
    """

    model: str
    predictions: list[dict[str, Any]]


class ModelsV1(BaseModel):
    """The models of the server: `name`, `kind` (translation or prediction), and `source` and `targets`, or `task`
    and `labels`; a model with several tasks has `tasks` instead, which contains `task` and `labels` by name.
    """

    models: list[dict[str, Any]]


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """Return the routes POST /v1/predict and GET /v1/models."""
    router, limits = APIRouter(prefix="/v1", tags=["dragoman"]), config.limits
    description = describe_route(PredictFields, form=False)
    description["responses"] = description["responses"] | {404: {"model": Error, "description": "no such model"}}

    @router.post("/predict", response_model=PredictedV1, **description)
    async def predict(request: Request) -> Response:
        """Predict the labels of texts, with probabilities, tags, numbers or answers to questions."""
        fields, caller = await gate.enter(request, PredictFields, translates=True)
        given = fields.text if isinstance(fields.text, list) else [fields.text]
        check_texts([part for each in given for part in _strings(each)], limits, "text", len(given))
        model = service.predictors.choose(fields.model)
        job = PredictionJob(model, [_text(each) for each in given], caller.reserve, caller.name, fields.task)
        async with while_connected(request):
            results = await service.predict(job)
        response = PredictedV1(model=model.name, predictions=list(map(_as_json, results)))
        # serialised explicitly, because FastAPI would validate the response again
        return Response(response.model_dump_json(), media_type="application/json")

    @router.get("/models", responses=ERRORS)
    async def models(request: Request) -> ModelsV1:
        """Return the models of the server."""
        await gate.enter(request, KeyFields)
        translators = [
            {"name": each.name, "kind": "translation", "source": each.source, "targets": list(each.targets)}
            for each in service.directions.models
        ]
        return ModelsV1(models=[*translators, *(each.as_json() for each in service.predictors.values())])

    return router


def _strings(field: TextField) -> list[str]:
    """Return all strings of a text, whose characters are counted."""
    if isinstance(field, str):
        return [field]
    if isinstance(field, WordsField):
        return [*field.words, *chain.from_iterable(field.features)]
    return list(field.model_dump().values())


def _text(field: TextField) -> Text:
    """Return a text in the form that `Predictor.predict` expects."""
    if isinstance(field, str):
        return field
    if isinstance(field, WordsField):
        return TaggedSentence(tuple(field.words), features=tuple(map(tuple, field.features)))
    if isinstance(field, PairField):
        return LabelledText((field.text, field.pair))
    return Question("", field.question, field.context)


def _as_json(result: PredictedText | RequestError) -> dict[str, Any]:
    if isinstance(result, RequestError):
        return {"error": result.message}
    return {**result.prediction.as_json(), **({"cut": result.cut} if result.cut else {})}
