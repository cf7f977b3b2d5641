"""`predict` reads examples from a file, and writes the predictions of a model for them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO, get_args

from dragoman.base.errors import ConfigError, reject_options
from dragoman.base.files import atomic_file, atomic_write
from dragoman.base.log import quietly, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.progress import Progress
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.checkpoint.folder import folder_kind
from dragoman.data.labelled.corpus import (
    LabelledCorpusConfig,
    QuestionCorpusConfig,
    TaggedCorpusConfig,
    TreebankCorpusConfig,
)
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.data.labelled.read import read_labelled, read_parsed, read_questions, read_tagged
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.filling import MASK_SYMBOL, FillPrediction
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.prediction.heads.readers import FILLS, Prediction
from dragoman.inference.prediction.heads.regression import ValuePrediction
from dragoman.inference.prediction.heads.tagging import TagPrediction
from dragoman.inference.prediction.nodes import NodePredictor, read_nodes
from dragoman.inference.prediction.outputs import TOKENS
from dragoman.inference.prediction.predictor import Predictor
from dragoman.inference.prediction.text_vectors import check_output_format, write_vectors
from dragoman.models.heads.chart import ChartHeadConfig
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.text.trees.drawing import draw_tree
from dragoman.text.trees.tree import Tree

OutputFormat = Literal["auto", "jsonl", "tsv", "conll", "squad", "squad_nbest", "trees", "drawing"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
_WINDOW = 1024
"""Number of examples that are predicted before their predictions are written."""
_MAX_PICTURES = 200
"""Maximum number of trees in a picture."""
_SQUAD = ("squad", "squad_nbest")
_TAGGED_SUFFIXES = (".conll", ".conllu", ".iob", ".bio")


def predict(
    model: str | Path | Predictor | NodePredictor,
    source: str | Path,
    output: str | Path | TextIO,
    settings: Overrides = (),
    *,
    format: OutputFormat = "auto",
    vectors: bool = False,
    batch_tokens: int = TOKENS,
    device: str | None = None,
    threads: int | None = None,
    fills: int = FILLS,
    task: str | None = None,
    engine: str = "auto",
    precision: str = "float32",
    draw: str | Path | None = None,
    quiet: bool = False,
) -> int:
    """Write the prediction for each example of a file in input order, like `dragoman predict`. Returns their number.

    model: a model folder or a predictor. source: a file in any format of a labelled corpus, whose labels are not used.
    If the model classifies the nodes of a graph, it is the file of the nodes, and `settings` contain the file of the
    edges (`edges`) and the set of the nodes to predict (`split`, by default all). For a tagging model, a file contains
    one text per line, unless its name or `settings` state a format. output: a file, which is written when all
    predictions are complete, or an open file, which is written line by line. settings: the settings of the corpus, such
    as `{"columns.text": "review"}`. format: jsonl: one JSON object per example. tsv: number and prediction, as in GLUE.
    conll: the words, with the predicted tag in the last column. squad: one JSON object with the answer of each
    question. squad_nbest: one with the best answers of each question. trees: the tree of each sentence in brackets, one
    per line. drawing: each tree as a drawing of several lines. auto: trees for a parser, jsonl for other models. fills:
    number of tokens that a masked language model predicts for each `<mask>` of a text. task: name of the task, if
    `model` is the folder of a model with several. vectors: write the vector of each text (`Predictor.vectors`) instead
    of predictions, as JSON objects or, if the name of the output ends in .npy, as an array (N, d) float32. engine,
    precision: as in `Predictor.load`, for a model folder. draw: an SVG file with pictures of the trees that a parser
    predicts.

    Raises ConfigError for a format that does not fit the model, DataError if the file cannot be read, and the errors of
    `Predictor.load`.

    >>> from dragoman import predict
    >>> predict("runs/labels", "reviews-test.tsv", "predictions.tsv", format="tsv")
    60
    """
    with quietly(quiet):
        use_threads(threads)
        if isinstance(model, NodePredictor) or (
            not isinstance(model, Predictor) and "classify_nodes" in folder_kind(Path(model)).verbs
        ):
            nodes = model if isinstance(model, NodePredictor) else NodePredictor.load(model, device)
            _check_node_options(format, vectors, task, draw)
            return _write_nodes(nodes, source, output, settings)
        predictor = model
        if not isinstance(predictor, Predictor):
            predictor = Predictor.load(predictor, device, fills, task=task, engine=engine, precision=precision)
        if vectors:
            reject_options({"--draw": draw}, "without --vectors")
            check_output_format("jsonl" if format == "auto" else format)
            return write_vectors(predictor, source, output, settings, batch_tokens)
        if format == "auto":
            format = "trees" if isinstance(predictor.head, TreeHead) else "jsonl"
        _check_format(predictor, format)
        pictures = None if draw is None else _TreePictures(predictor, Path(draw))
        examples = read_examples(predictor, source, settings)
        if not isinstance(output, str | Path):
            return _write(predictor, examples, output, format, batch_tokens, pictures)
        with atomic_file(Path(output)) as path, path.open("w", encoding="utf-8", newline="\n") as file:
            return _write(predictor, examples, file, format, batch_tokens, pictures)


class _TreePictures:
    """Collects the trees of a parser and draws them."""

    def __init__(self, predictor: Predictor, file: Path) -> None:
        """Raise ConfigError unless the model is a parser and the file an SVG file."""
        if not isinstance(predictor.head, TreeHead):
            raise ConfigError(f"only trees are drawn, but the model has a head of kind {predictor.head.kind}")
        if file.suffix.lower() != ".svg":
            raise ConfigError(f"a picture of trees is an SVG file, not {file}: name it {file.with_suffix('.svg').name}")
        self._file = file
        self._trees: list[Tree] = []

    def add(self, prediction: Prediction) -> None:
        """Add the tree of a sentence."""
        if isinstance(prediction, TreePrediction) and prediction.tree.words:
            self._trees.append(prediction.tree)

    def write(self) -> None:
        """Draw all trees. A warning reports trees beyond `_MAX_PICTURES`."""
        from dragoman.figures.constituency_tree import draw_trees  # matplotlib takes long to import

        if len(self._trees) > _MAX_PICTURES:
            warn(f"{self._file} shows the first {_MAX_PICTURES} of {len(self._trees):,} trees")
        draw_trees(self._trees[:_MAX_PICTURES], self._file)


def read_examples(
    predictor: Predictor, source: str | Path, settings: Overrides = (), labelled: bool = False
) -> Sequence[Any]:
    """Return the examples of a file in the form that a predictor expects.

    settings: the settings of the corpus. labelled: whether the examples must have labels. Raises ConfigError for an
    unknown setting, DataError if the file cannot be read.
    """
    values = all_overrides({"path": str(source)}, settings)
    if isinstance(predictor.head, SpanHeadConfig):
        return read_questions(load_settings(None, values, QuestionCorpusConfig), labelled)
    if isinstance(predictor.head, TreeHead):
        return read_parsed(load_settings(None, values, TreebankCorpusConfig), labelled)
    if not isinstance(predictor.head, TaggingHeadConfig):
        return read_labelled(load_settings(None, values, LabelledCorpusConfig), labelled)
    is_named = any(suffix in _TAGGED_SUFFIXES for suffix in Path(source).suffixes)
    if labelled or is_named or any(each.key[0] != "path" and each.value != "text" for each in values):
        return read_tagged(load_settings(None, values, TaggedCorpusConfig), labelled)
    lines = read_labelled(load_settings(None, all_overrides({"format": "text"}, values), LabelledCorpusConfig), False)
    return [line.texts[0] for line in lines]


def _check_node_options(output_format: str, vectors: bool, task: str | None, draw: str | Path | None) -> None:
    """Raise ConfigError for options that do not apply to the nodes of a graph."""
    if output_format not in ("auto", "jsonl"):
        raise ConfigError(f"the format {output_format} does not fit the model, which classifies nodes: use jsonl")
    reject_options({"--vectors": vectors or None, "--task": task, "--draw": draw}, "with a model of texts")


def _write_nodes(predictor: NodePredictor, source: str | Path, output: str | Path | TextIO, settings: Overrides) -> int:
    """Write the prediction for each node as a JSON object."""
    graph, nodes = read_nodes(source, settings, "all")
    predictions = predictor.predict(graph)
    text = "".join(
        json.dumps({"id": graph.ids[node], **predictions[node].as_json()}, ensure_ascii=False) + "\n" for node in nodes
    )
    if not isinstance(output, str | Path):
        output.write(text)
    else:
        atomic_write(Path(output), text)
    return len(nodes)


def _check_format(predictor: Predictor, output_format: str) -> None:
    """Raise ConfigError for an unknown format and for one that does not fit the model."""
    if output_format not in OUTPUT_FORMATS:
        raise ConfigError(f"unknown format {output_format!r}: expected one of {', '.join(OUTPUT_FORMATS)}")
    required = {
        "tsv": (ClassificationHeadConfig, RegressionHeadConfig),
        "conll": (TaggingHeadConfig,),
        "squad": (SpanHeadConfig,),
        "squad_nbest": (SpanHeadConfig,),
        "trees": (TreeDecoderHeadConfig, ChartHeadConfig),
        "drawing": (TreeDecoderHeadConfig, ChartHeadConfig),
    }
    if output_format in required and not isinstance(predictor.head, required[output_format]):
        raise ConfigError(
            f"the format {output_format} does not fit the model, which has a head of kind {predictor.head.kind}: use "
            "jsonl"
        )


def _write(
    predictor: Predictor,
    examples: Sequence[Any],
    file: TextIO,
    output_format: OutputFormat,
    batch_tokens: int,
    pictures: _TreePictures | None = None,
) -> int:
    if output_format == "tsv":
        file.write("index\tprediction\n")
    answers: dict[str, Any] = {}
    without_mask = 0
    with Progress("Predicting", "examples", len(examples)) as progress:
        for number, (example, prediction) in enumerate(_predictions(predictor, examples, batch_tokens)):
            if output_format in _SQUAD and isinstance(prediction, AnswerPrediction):
                answers[example.id] = prediction.answer if output_format == "squad" else prediction.nbest()
            else:
                file.write(_format(number, example, prediction, output_format))
            if pictures is not None:
                pictures.add(prediction)
            without_mask += isinstance(prediction, FillPrediction) and not prediction.fills
            progress.update(number + 1)
    if pictures is not None:
        pictures.write()
    if without_mask:
        warn(
            f"{without_mask:,} text(s) contain no {MASK_SYMBOL}, so nothing was predicted for them: write "
            f"{MASK_SYMBOL} where words are to be predicted"
        )
    if output_format in _SQUAD:
        file.write(json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
    return len(examples)


def _predictions(predictor: Predictor, examples: Sequence[Any], batch_tokens: int) -> Iterator[tuple[Any, Prediction]]:
    for start in range(0, len(examples), _WINDOW):
        window = examples[start : start + _WINDOW]
        yield from zip(window, predictor.predict(window, batch_tokens=batch_tokens, first=start + 1), strict=True)


def _format(number: int, example: Any, prediction: Prediction, output_format: OutputFormat) -> str:
    """Return the line or lines of one prediction. number: index of the example, counted from 0."""
    if output_format == "conll" and isinstance(prediction, TagPrediction):
        columns: list[Sequence[str]] = [prediction.words]
        if isinstance(example, TaggedSentence):
            columns += [*example.features, *([] if example.tags is None else [example.tags])]
        rows = zip(*columns, prediction.tags, strict=True)
        return "".join(f"{' '.join(row)}\n" for row in rows) + "\n"
    if isinstance(prediction, TreePrediction) and output_format in ("trees", "drawing"):
        return f"{prediction.tree.rooted()}\n" if output_format == "trees" else f"{draw_tree(prediction.tree)}\n\n"
    if output_format == "tsv" and isinstance(prediction, ClassPrediction):
        return f"{number}\t{prediction.label}\n"
    if output_format == "tsv" and isinstance(prediction, ValuePrediction):
        return f"{number}\t{prediction.value:.6g}\n"
    name = getattr(example, "id", None) or str(number + 1)
    return json.dumps({"id": name, **prediction.as_json()}, ensure_ascii=False) + "\n"
