"""`inspect`: how a model of any kind computes its output for a text."""

from collections.abc import Iterable
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.data.graphs import Graph
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.load import Model, model_for
from dragoman.inference.subject import Subject, SubjectSettings
from dragoman.inspection.attention import absent_attention, attention_of
from dragoman.inspection.inspection import Inspection
from dragoman.inspection.neighbours import inspect_node
from dragoman.inspection.words import sentence_weights, word_relevance
from dragoman.models.families.hierarchical import HierarchicalEncoder


def inspect(
    model: Model,
    text: Any,
    *,
    target: str | None = None,
    to: str | None = None,
    tags: Iterable[str] = (),
    word: int | None = None,
    mask: int | None = None,
    graph: Graph | None = None,
    task: str | None = None,
    device: str | None = None,
) -> Inspection:
    """Return the attention weights of a model for a text, and what else its kind shows, like `dragoman inspect`.

    A model that predicts labels also shows the relevance of each word for the label, a parser its tree, a hierarchical
    encoder the weights of sentences, and a model that classifies the nodes of a graph those of a node's neighbours.

    model: a model folder or a loaded model. text: the source; the text of a language model or of a model that predicts
    labels, in a form of `Predictor.predict`; or the id of a node. target, to, tags, word, mask, graph: the fields of
    `SubjectSettings`. task: the name of a task, for the folder of a model with several. device: as in `load`, for a
    folder.

    Raises ConfigError for a setting that the model does not have, for a model without attention weights and for an
    engine whose computation is not visible; DataError for a text that is blank or too long; ModelError for a kind of
    model that does not show its computation; and the errors of `load`.

    >>> import dragoman
    >>> inspection = dragoman.inspect("runs/ende", "The dog sleeps.")
    >>> weights = inspection.kinds["decoder.cross_attention"][0].weights  # (heads, target tokens, source tokens)
    >>> bool((weights.sum(-1).round(3) == 1).all())
    True
    """
    loaded = open_visible(model, device, task)
    settings = SubjectSettings(target, to, tuple(tags), word, mask, graph)
    return inspection_of(loaded.subject(text, settings))


def open_visible(
    model: Model, device: str | None = None, task: str | None = None, engine: str = "torch"
) -> SupportsInspect:
    """Return a model that shows its computation, given its folder or the loaded model.

    engine: the engine that searches for translations; everything else is computed with PyTorch. Raises ModelError for
    another kind of model, and the errors of `load`.
    """
    options = {} if task is None else {"task": task}
    return model_for("inspect", model, device, preferred={"engine": engine, "precision": "float32"}, **options)


def inspection_of(subject: Subject) -> Inspection:
    """Return what a subject shows. Raises ConfigError for a model without attention weights."""
    if subject.node is not None:
        return inspect_node(subject, subject.node)
    encoder = getattr(subject.model, "encoder", None)
    if isinstance(encoder, HierarchicalEncoder) and subject.words is not None:
        document = sentence_weights(subject, encoder, subject.words.words)
        return Inspection(subject.source, subject.target, (), document=document)
    maps, absent = attention_of(subject), absent_attention(subject)
    if subject.words is not None:
        relevance, erasure = word_relevance(subject, subject.words)
        return Inspection(
            subject.source, subject.target, tuple(maps), tuple(absent), relevance, erasure, fills=subject.fills
        )
    if not maps and subject.tree is None:
        raise ConfigError(f"this model has no attention weights. {'; '.join(absent)}")
    return Inspection(subject.source, subject.target, tuple(maps), tuple(absent), tree=subject.tree)
