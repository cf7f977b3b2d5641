"""`Subject`: a text and the output of a model for it, whose computation is analysed."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.errors import ConfigError, DataError, LineError, reject_options
from dragoman.data.batches.batch import pad
from dragoman.data.graphs import Graph
from dragoman.decode.search import Hypothesis
from dragoman.engines.choice import ModelEngine
from dragoman.engines.engine import Engine
from dragoman.engines.router import Router
from dragoman.engines.torch.engine import TorchEngine
from dragoman.figures.inspection import check_not_blank, check_token_count
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.prediction.heads.parsing import TreePrediction, span_labels
from dragoman.inference.prediction.input_words import texts_of
from dragoman.inference.prediction.inspection import explained_output
from dragoman.inference.prediction.nodes import NodePredictor
from dragoman.inference.prediction.predictor import Predictor, Text
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Translator
from dragoman.models.attention_weights import END
from dragoman.models.heads.chart import ChartHead, ChartOutput
from dragoman.models.heads.tree_decoder import TreeDecoderHead, TreeDecoderOutput, teacher_inputs
from dragoman.models.heads.trees import TreeHead
from dragoman.models.interface import Output
from dragoman.nn.attention.head_mask import has_masked_heads
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizer import Tokenizer

Loaded = Translator | LanguageModel | Predictor
"""A model of texts that was loaded from a folder."""

Analysed = Loaded | NodePredictor
"""A model whose output can be analysed: of texts, or of the nodes of a graph."""


@dataclass(frozen=True)
class SubjectSettings:
    """The choices that complete a text. All are optional.

    target: the translation to analyse, or its token ids without special symbols; None for the model's own. to, tags: as
    in `Translator.request`. word, mask: as in `Predictor.inspect`. graph: the graph that contains a node; None for that
    of the model's training.
    """

    target: str | tuple[int, ...] | None = None
    to: str | None = None
    tags: tuple[str, ...] = ()
    word: int | None = None
    mask: int | None = None
    graph: Graph | None = None


class Decoding(NamedTuple):
    """The decoder of a subject. module: the decoder. logits: returns the logits (T + 1, V) at all positions of the
    target from what the model returns. pieces: returns the names of token ids.
    """

    module: Any
    logits: Callable[[Any], Tensor]
    pieces: Callable[[Sequence[int]], Sequence[str]]


@dataclass(frozen=True)
class Subject:
    """A text, and the output of a model for it.

    model: a module in evaluation mode. arguments: its inputs for the text, one row each. output: describes the output,
    such as "log-probability of the translation". terms: the labels of the N terms whose sum is the output: the
    predicted tokens and the end symbol, or a single label. select: returns the terms (N,) of what the model returns,
    differentiable. source, target: the text, and the text or label that is predicted; source is None for a language
    model. source_ids, target_ids: the tokens of a model with a decoder, without special symbols except tags. decoding:
    its decoder; None for a model without one.
    """

    model: nn.Module
    arguments: tuple[Tensor, ...]
    output: str
    terms: tuple[str, ...]
    select: Callable[[Any], Tensor]
    source: str | None
    target: str
    source_ids: Sequence[Any] = ()
    target_ids: tuple[int, ...] = ()
    decoding: Decoding | None = None

    def compute(self) -> Tensor:
        """Return the terms (N,) of the output, differentiable."""
        return self.select(self.model(*self.arguments))

    def values(self) -> NDArray[np.float64]:
        """Return the terms (N,) of the output."""
        with torch.inference_mode():
            return self.compute().double().cpu().numpy()


def subject_of(loaded: Analysed, text: Text, settings: SubjectSettings | None = None) -> Subject:
    """Return the output of a model for a text.

    It is the log-probability of the translation of a text, of the text itself for a language model, and of the
    predicted label for a model with a head, or the number that such a model predicts. For a parser, it is the
    log-probability of the predicted tree if a decoder generates it, and otherwise its score in the chart. For a model
    that classifies nodes, the text is the id of a node.

    Raises ConfigError for a setting that the model does not have, and for a model or an engine whose computation is not
    visible; DataError for a text that is blank or too long, and the errors of `Predictor.inspect`.
    """
    settings = settings or SubjectSettings()
    given = {"--target": settings.target, "--to": settings.to, "--tags": settings.tags or None}
    labelled = {"--word": settings.word, "--mask": settings.mask}
    if isinstance(loaded, Predictor):
        reject_options(given, "with a translation model")
        return _label_subject(loaded, text, settings)
    if isinstance(loaded, NodePredictor):
        reject_options({**given, **labelled}, "with a model of texts")
        return _node_subject(loaded, str(text), settings.graph)
    reject_options(labelled, "with a model that predicts labels")
    if not isinstance(text, str):
        raise ConfigError("this model reads one text, not a pair of texts: pass a string")
    if isinstance(loaded, LanguageModel):
        reject_options(given, "with a translation model")
        check_not_blank(text, "text")
        return text_subject(loaded, loaded.tokenizer.encode(text))
    if isinstance(loaded, Translator):
        request = loaded.request(to=settings.to, tags=settings.tags)
        return translation_subject(loaded, text, settings.target, request)
    raise ConfigError(
        "this model cannot be analysed: load a translation model, a language model or a model that "
        "predicts labels of texts"
    )


def visible_engine(translator: Translator) -> TorchEngine:
    """Return the engine that computes with PyTorch, whose computation is visible.

    Raises ConfigError for a translator without such an engine.
    """
    engine = translator.engine
    if isinstance(engine, Router):
        engine = engine.reference
    if not isinstance(engine, TorchEngine):
        raise ConfigError(
            "the computation of this engine is not visible: load a model folder with --engine torch or auto; exported "
            "and statistical models cannot be analysed"
        )
    return engine


def search_engine(translator: Translator) -> Engine:
    """Return the engine that searches for translations: the translator's own, or, while heads are off, the visible one.

    Raises ConfigError as `visible_engine` does.
    """
    visible = visible_engine(translator)
    return visible if has_masked_heads() else translator.engine


def visible_model(loaded: Analysed) -> Any:
    """Return the module whose computation is visible. Raises ConfigError as `visible_engine` does."""
    return visible_engine(loaded).model if isinstance(loaded, Translator) else loaded.model


def visible_predictor(predictor: Predictor) -> Predictor:
    """Return the predictor with the engine that computes with PyTorch, whose computation is visible."""
    if predictor.engine.name == "torch":
        return predictor
    visible = copy(predictor)
    visible.engine = ModelEngine("torch", "float32", predictor.model)
    return visible


def best_hypothesis(translator: Translator, source: str, request: Request) -> Hypothesis:
    """Return the best translation of a text by `search_engine`.

    Raises DataError for a text that is blank or too long.
    """
    check_not_blank(source, "text")
    try:
        rows = translator.codec.encode_rows([(source, request)], [1])
        translator.codec.check_length(1, rows[0].source, rows[0].prefix.ids)
    except LineError as error:
        raise DataError(f"the text is too long: {error.reason}") from None
    ((_, hypotheses),) = search_engine(translator).hypotheses(rows, 1)
    return hypotheses[0]


def best_translation(translator: Translator, source: str, request: Request) -> Translation:
    """Return the text of `best_hypothesis`."""
    return translator.codec.decode(best_hypothesis(translator, source, request))


def translation_subject(
    translator: Translator, source: str, target: str | Sequence[int] | None, request: Request
) -> Subject:
    """Return the log-probability of a translation.

    target: a text, its token ids, or None for the best translation. request: the tags of the source, and the search for
    the best translation. Raises DataError for a text that is blank or too long, and ConfigError as `visible_engine`.
    """
    engine = visible_engine(translator)
    check_not_blank(source, "text")
    given = target if isinstance(target, str) else ""
    if isinstance(target, str):
        check_not_blank(target, "target")
    try:
        (pair,) = translator.codec.encode_pairs([source], [given], request.tags)
        check_token_count(len(pair.source))
        if target is None:
            target = best_hypothesis(translator, source, request).tokens
        ids = tuple(pair.target) if isinstance(target, str) else tuple(target)
        translator.codec.check_length(1, pair.source, ids)
    except LineError as error:
        raise DataError(f"the text is too long: {error.reason}") from None
    inputs = tuple(each.to(engine.device) for each in pad([pair.source], after=(EOS,)))
    tokenizer = translator.tokenizers.target
    text = target if isinstance(target, str) else tokenizer.decode(ids)
    output = "log-probability of the translation"
    return _target_subject(engine.model, inputs, ids, tokenizer, output, source, text, pair.source)


def text_subject(language_model: LanguageModel, ids: Sequence[int]) -> Subject:
    """Return the log-probability of a text by a language model. Raises DataError for too many tokens."""
    if language_model.window is not None and len(ids) >= language_model.window:
        held = language_model.window - 1
        raise DataError(f"the text has {len(ids)} tokens, but the window holds {held}: shorten it")
    tokenizer = language_model.tokenizer
    text, output = tokenizer.decode(ids), "log-probability of the text"
    return _target_subject(language_model.model, (), tuple(ids), tokenizer, output, None, text, ())


def _target_subject(
    model: Any,
    inputs: tuple[Tensor, ...],
    ids: tuple[int, ...],
    tokenizer: Tokenizer,
    output: str,
    source: str | None,
    target: str,
    source_ids: Sequence[Any],
) -> Subject:
    """Return the log-probability of a target by a model with a decoder. inputs: those of the encoder, one row."""
    check_token_count(len(ids))
    device = next(model.parameters()).device
    read = torch.tensor([[BOS, *ids]], device=device)
    labels = torch.tensor([*ids, EOS], device=device)

    def logits(outputs: Output) -> Tensor:
        return outputs.logits()[0]

    terms = (*tokenizer.pieces(ids), END)
    decoding = Decoding(getattr(model, "decoder", None), logits, tokenizer.pieces)
    select = partial(_log_probabilities, logits, labels)
    return Subject(model, (*inputs, read), output, terms, select, source, target, source_ids, ids, decoding)


def _log_probabilities(logits: Callable[[Any], Tensor], labels: Tensor, outputs: Any) -> Tensor:
    """Return the log-probabilities (N,) of labels (N,) at all positions. logits: as in `Decoding`."""
    return logits(outputs).log_softmax(-1).gather(1, labels.unsqueeze(1)).squeeze(1)


def _label_subject(predictor: Predictor, text: Text, settings: SubjectSettings) -> Subject:
    predictor = visible_predictor(predictor)
    if isinstance(predictor.head, TreeHead):
        reject_options({"--word": settings.word, "--mask": settings.mask}, "with a model of tags or masks")
        return tree_subject(predictor, text)
    encoded = predictor.encode([text])
    (prediction,) = predictor.predict_encoded(encoded)
    output = explained_output(
        predictor.tokenizer,
        predictor.labels,
        encoded[0].example,
        encoded[0].inputs,
        prediction,
        settings.word,
        settings.mask,
    )
    check_token_count(len(output.row.ids))
    tokens = torch.tensor([output.row.ids], device=predictor.device)
    arguments = (tokens, torch.ones_like(tokens, dtype=torch.bool))
    described = output.measure if output.competing is None else f"log-probability of {output.name}"
    return Subject(
        predictor.model,
        arguments,
        described,
        (output.label,),
        lambda outputs: output.log_probability(outputs).reshape(1),
        " / ".join(texts_of(encoded[0].example)),
        output.label,
    )


def tree_subject(predictor: Predictor, text: Text, symbols: Sequence[int] | None = None) -> Subject:
    """Return the log-probability of a tree by a parser that generates it, or the score of a tree in a chart.

    symbols: the ids of the first symbols of the generated tree; None for the predicted tree. Raises DataError for a
    sentence that is blank or too long, for symbols with more words than the sentence, and for a tree without
    constituents.
    """
    predictor = visible_predictor(predictor)
    (encoded,) = predictor.encode([text])
    words = " ".join(encoded.example.words)
    check_not_blank(words, "sentence")
    (row,) = encoded.inputs
    check_token_count(len(row.ids))
    tokens = torch.tensor([row.ids], device=predictor.device)
    arguments = (tokens, torch.ones_like(tokens, dtype=torch.bool))
    head, ends = predictor.model.head, [*row.places, len(row.ids) - 1]
    prediction = predictor.predict_encoded([encoded])[0] if symbols is None else None
    assert prediction is None or isinstance(prediction, TreePrediction), "the model parses"
    if isinstance(head, ChartHead):
        assert prediction is not None, "a chart has no symbols"
        return _chart_subject(predictor, arguments, ends, prediction, words)
    assert isinstance(head, TreeDecoderHead), "other parsers have a chart"
    names = head.symbols
    ids = tuple(names.encode(prediction.tree) if prediction is not None else symbols or ())
    count = list(accumulate((names.first_word <= each < names.first_opening for each in ids), initial=0))
    if count[-1] >= len(ends):
        raise DataError(f"the prefix has {count[-1]} words, but the sentence has {len(ends) - 1}: shorten the prefix")
    check_token_count(len(ids))
    labels = torch.tensor([*ids, EOS], device=predictor.device)
    places = torch.tensor([[ends[number] for number in count]], device=predictor.device)

    def logits(output: TreeDecoderOutput) -> Tensor:
        return output.logits(teacher_inputs(labels.unsqueeze(0), BOS, PAD), places)[0]

    target = " ".join(names.decode(ids)) if prediction is None else str(prediction.tree.rooted())
    return Subject(
        predictor.model,
        arguments,
        "log-probability of the tree",
        (*names.decode(ids), END),
        partial(_log_probabilities, logits, labels),
        words,
        target,
        row.ids,
        ids,
        Decoding(head.decoder, logits, names.decode),
    )


def _chart_subject(
    predictor: Predictor, arguments: tuple[Tensor, ...], ends: list[int], prediction: TreePrediction, words: str
) -> Subject:
    """Return the score of the predicted tree: the sum of the scores of the labels of its spans.

    ends: the positions in the input of the words and of the end.
    """
    spans, device = span_labels(prediction.tree), predictor.device
    if not spans:
        raise DataError("the predicted tree has no constituents, so that it has no score: choose another sentence")
    assert isinstance(predictor.head, TreeHead), "the model parses"
    known = predictor.head.known_labels
    labels = torch.tensor([[known.index(each.label)] for each in spans], device=device)
    bounds = torch.tensor([[each.start, each.end] for each in spans], device=device)

    def select(output: ChartOutput) -> Tensor:
        fenceposts = output.fenceposts(0, torch.tensor(ends, device=device))
        return output.spans(fenceposts, bounds[:, 0], bounds[:, 1]).gather(1, labels).squeeze(1)

    texts = words.split()
    terms = tuple(f"{each.label}: {' '.join(texts[each.start : each.end])}" for each in spans)
    target = str(prediction.tree.rooted())
    return Subject(predictor.model, arguments, "score of the tree", terms, select, words, target)


def _node_subject(predictor: NodePredictor, node: str, graph: Graph | None) -> Subject:
    """Return the log-probability of the predicted class of a node. Raises the errors of `NodePredictor.graph`."""
    graph = predictor.graph() if graph is None else graph
    number, arguments = graph.number(node), predictor.batch(graph).model_inputs
    with torch.inference_mode():
        label = int(predictor.model(*arguments)[number].argmax())

    def select(logits: Tensor) -> Tensor:
        return logits[number].log_softmax(-1)[label].reshape(1)

    name = predictor.labels[label]
    described = f"log-probability of {name!r} for node {node}"
    return Subject(predictor.model, arguments, described, (name,), select, node, name)
