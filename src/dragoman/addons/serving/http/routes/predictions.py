"""The route `/v1/predict`, which predicts labels of texts, and of the nodes of graphs."""

from itertools import chain
from typing import Any, Self

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.errors import RequestError
from dragoman.addons.serving.http.gate import Gate, KeyFields
from dragoman.addons.serving.http.requests import Error, check_texts, describe_route, while_connected
from dragoman.addons.serving.models.graph_nodes import RequestedNode
from dragoman.addons.serving.service.prediction_queue import PredictedText, PredictionJob
from dragoman.addons.serving.service.service import Service
from dragoman.base.errors import DataError
from dragoman.data.graphs import Graph, build_graph
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


class NodeField(BaseModel):
    """A node of a graph, by its id."""

    model_config = ConfigDict(extra="forbid")

    node: str


class GraphNodeField(BaseModel):
    """A node of a graph in a request. words: its features as in a file of nodes, such as `3 17:0.5`."""

    model_config = ConfigDict(extra="forbid")

    id: str
    words: str = ""


class GraphField(BaseModel):
    """A graph. edges: pairs of ids, without direction."""

    model_config = ConfigDict(extra="forbid")

    nodes: list[GraphNodeField]
    edges: list[tuple[str, str]] = []


TextField = str | PairField | WordsField | QuestionField | NodeField


class PredictFields(KeyFields):
    """One or several texts whose labels are predicted. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")

    text: TextField | list[TextField] = Field(
        description="A text, or a list. A text is a string, a pair {text, pair}, the words {words: […]} of a sentence, "
        "a question {question, context}, or a node {node} of a graph, depending on the task of the model."
    )
    model: str | None = Field(None, description="Name of the model; null: the only prediction model of the server.")
    graph: GraphField | None = Field(
        None, description="Graph of the nodes; null: the graph that the model was trained with."
    )
    task: str | None = Field(None, description="Name of the task, for a model with several tasks; null: the only task.")


class PredictedV1(BaseModel):
    """The predictions for all texts, in order.

    Each prediction is an object as `dragoman predict` writes it, with `label` and `probabilities`, `value`, `words` and
    `tags`, or `answer`. `cut` is the number of tokens at the end of a long text that were not read, if any. A text
    without a prediction has only `error`.
    """

    model: str
    predictions: list[dict[str, Any]]


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """Return the route POST /v1/predict."""
    router, limits = APIRouter(prefix="/v1", tags=["dragoman"]), config.limits
    description = describe_route(PredictFields, form=False)
    description["responses"] = description["responses"] | {404: {"model": Error, "description": "no such model"}}

    @router.post("/predict", response_model=PredictedV1, **description)
    async def predict(request: Request) -> Response:
        """Predict the labels of texts, with probabilities, tags, numbers or answers to questions."""
        fields, caller = await gate.enter(request, PredictFields, translates=True)
        given = fields.text if isinstance(fields.text, list) else [fields.text]
        strings = [part for each in given for part in _strings(each)]
        check_texts([*strings, *_graph_strings(fields.graph)], limits, "text", len(given))
        model = service.predictors.choose(fields.model)
        async with while_connected(request):
            graph = await service.prepare(caller.name, lambda: _graph(fields.graph), is_document=False)
            texts = [_text(each, graph) for each in given]
            results = await service.predict(PredictionJob(model, texts, caller.reserve, caller.name, fields.task))
        response = PredictedV1(model=model.name, predictions=list(map(_as_json, results)))
        # serialised explicitly, because FastAPI would validate the response again
        return Response(response.model_dump_json(), media_type="application/json")

    return router


def _strings(field: TextField) -> list[str]:
    """Return all strings of a text, whose characters are counted."""
    if isinstance(field, str):
        return [field]
    if isinstance(field, WordsField):
        return [*field.words, *chain.from_iterable(field.features)]
    return list(field.model_dump().values())


def _graph_strings(field: GraphField | None) -> list[str]:
    """Return all strings of a graph, whose characters are counted."""
    if field is None:
        return []
    return [*chain.from_iterable(field.edges), *chain.from_iterable((node.id, node.words) for node in field.nodes)]


def _graph(field: GraphField | None) -> Graph | None:
    """Return the graph of a request. Raises RequestError for one that is not valid."""
    if field is None:
        return None
    try:
        return build_graph([(node.id, node.words) for node in field.nodes], field.edges)
    except DataError as error:
        raise RequestError(f"Invalid request: graph: {error}", "graph") from None


def _text(field: TextField, graph: Graph | None) -> Text | RequestedNode:
    """Return a text in the form that `Predictor.predict` expects."""
    if isinstance(field, str):
        return field
    if isinstance(field, NodeField):
        return RequestedNode(field.node, graph)
    if isinstance(field, WordsField):
        return TaggedSentence(tuple(field.words), features=tuple(map(tuple, field.features)))
    if isinstance(field, PairField):
        return LabelledText((field.text, field.pair))
    return Question("", field.question, field.context)


def _as_json(result: PredictedText | RequestError) -> dict[str, Any]:
    if isinstance(result, RequestError):
        return {"error": result.message}
    return {**result.prediction.as_json(), **({"cut": result.cut} if result.cut else {})}
