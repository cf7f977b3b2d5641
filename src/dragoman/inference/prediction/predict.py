"""`predict` reads examples from a file, and writes the predictions of a model for them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from dragoman.base.errors import ConfigError, reject_options
from dragoman.base.files import atomic_file, atomic_write
from dragoman.base.log import quietly, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.progress import Progress
from dragoman.base.settings.load import Overrides
from dragoman.data.labelled.examples import LabelledText
from dragoman.figures.constituency_tree import draw_trees
from dragoman.inference.abilities import (
    Prediction,
    SupportsClassifyNodes,
    SupportsFiles,
    SupportsPredict,
    SupportsVectors,
)
from dragoman.inference.load import Model, kind_of, model_for
from dragoman.inference.prediction.formats import OUTPUT_FORMATS, SQUAD, OutputFormat, format_prediction
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.inference.prediction.heads.filling import MASK_SYMBOL, FillPrediction
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.prediction.heads.readers import FILLS
from dragoman.inference.prediction.nodes import read_nodes
from dragoman.inference.prediction.outputs import TOKENS
from dragoman.inference.prediction.readable import ReadablePredictions
from dragoman.inference.prediction.text_vectors import check_output_format, read_texts, write_vectors
from dragoman.text.trees.tree import Tree

_WINDOW = 1024
"""Number of examples that are predicted before their predictions are written."""
_MAX_PICTURES = 200
"""Maximum number of trees in a picture."""
_TAGGED_SUFFIXES = (".conll", ".conllu", ".iob", ".bio")


def predict(
    model: Model,
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
    per line. drawing: each tree as a drawing of several lines. table: lines for a reader, as wide as the terminal.
    auto: trees for a parser; for other models, table if `output` is a terminal, otherwise jsonl. fills: number of
    tokens that a masked language model predicts for each `<mask>` of a text. task: name of the task, if
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
        if "classify_nodes" in kind_of(model).abilities:
            _check_node_options(format, vectors, task, draw)
            nodes = model_for("classify_nodes", model, device)
            return _write_nodes(nodes, source, output, settings, format == "table" or _is_read(format, output))
        chosen = {"task": task, "engine": engine, "precision": precision, "fills": fills}
        options: dict[str, Any] = {name: value for name, value in chosen.items() if value != _DEFAULTS[name]}
        predictor = model_for("predict", model, device, **options)
        if vectors:
            reject_options({"--draw": draw}, "without --vectors")
            check_output_format("jsonl" if format == "auto" else format)
            return write_vectors(_with_vectors(predictor, model), source, output, settings, batch_tokens)
        files = _file_reader(predictor)
        written = _choose_format(files, "table" if _is_read(format, output, files.formats) else format)
        pictures = None if draw is None else _TreePictures(files, Path(draw))
        examples = files.read_examples(source, settings)
        if not isinstance(output, str | Path):
            return _write(files, examples, output, written, batch_tokens, pictures=pictures)
        with atomic_file(Path(output)) as path, path.open("w", encoding="utf-8", newline="\n") as file:
            return _write(files, examples, file, written, batch_tokens, pictures=pictures)


_DEFAULTS = {"task": None, "engine": "auto", "precision": "float32", "fills": FILLS}
"""Values of options with which a loader is not called, because a kind may not have them."""


def _with_vectors(predictor: SupportsPredict, model: object) -> SupportsVectors:
    if not isinstance(predictor, SupportsVectors):
        raise ConfigError(f"{model} is {predictor.kind.noun}, which has no vectors of texts: leave out --vectors")
    return predictor


def _file_reader(predictor: SupportsPredict) -> SupportsFiles:
    """Return a predictor that reads files; one that only predicts reads a labelled corpus of texts."""
    return predictor if isinstance(predictor, SupportsFiles) else TextFiles(predictor)


class TextFiles:
    """Reads texts, or pairs of texts, for a predictor that reads no files itself."""

    formats = ("jsonl", "table")

    def __init__(self, predictor: SupportsPredict) -> None:
        self._predictor = predictor
        self.kind, self.task, self.labels = predictor.kind, predictor.task, predictor.labels

    def read_examples(self, source: str | Path, settings: Overrides = (), labelled: bool = False) -> Sequence[Any]:
        """See `SupportsFiles.read_examples`."""
        return read_texts(source, settings, labelled)

    def predict(self, texts: Sequence[Any], *, batch_tokens: int = TOKENS, first: int = 1) -> Sequence[Prediction]:
        """See `SupportsPredict.predict`. texts: the examples that `read_examples` returns."""
        plain = [each.texts[0] if len(each.texts) == 1 else each.texts for each in texts]
        return self._predictor.predict(plain, batch_tokens=batch_tokens, first=first)


class _TreePictures:
    """Collects the trees of a parser and draws them."""

    def __init__(self, predictor: SupportsFiles, file: Path) -> None:
        """Raise ConfigError unless the model is a parser and the file an SVG file."""
        if "trees" not in predictor.formats:
            raise ConfigError(f"only trees are drawn, but the task of the model is {predictor.task}: leave out --draw")
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
        if len(self._trees) > _MAX_PICTURES:
            warn(f"{self._file} shows the first {_MAX_PICTURES} of {len(self._trees):,} trees")
        draw_trees(self._trees[:_MAX_PICTURES], self._file)


def _check_node_options(output_format: str, vectors: bool, task: str | None, draw: str | Path | None) -> None:
    """Raise ConfigError for options that do not apply to the nodes of a graph."""
    if output_format not in ("auto", "jsonl", "table"):
        raise ConfigError(
            f"the format {output_format} does not fit the model, which classifies nodes: use jsonl or table"
        )
    reject_options({"--vectors": vectors or None, "--task": task, "--draw": draw}, "with a model of texts")


def _write_nodes(
    predictor: SupportsClassifyNodes,
    source: str | Path,
    output: str | Path | TextIO,
    settings: Overrides,
    as_table: bool,
) -> int:
    """Write the prediction for each node as a JSON object, or as a line of a table with its identifier."""
    graph, nodes = read_nodes(source, settings, "all")
    predictions = predictor.predict(graph)
    if as_table:
        table = ReadablePredictions(list(predictions[0].as_json().get("probabilities", ())) if predictions else ())
        text = "".join(table(LabelledText((graph.ids[node],)), predictions[node]) for node in nodes)
    else:
        objects = ({"id": graph.ids[node], **predictions[node].as_json()} for node in nodes)
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)
    if not isinstance(output, str | Path):
        output.write(text)
    else:
        atomic_write(Path(output), text)
    return len(nodes)


def _is_read(output_format: str, output: str | Path | TextIO, formats: Sequence[str] = ("jsonl",)) -> bool:
    """Return whether somebody reads the predictions: no format is chosen, and they are printed on a terminal."""
    return output_format == "auto" and formats[0] == "jsonl" and not isinstance(output, str | Path) and output.isatty()


def _choose_format(predictor: SupportsFiles, output_format: str) -> OutputFormat:
    """Return the format of the output. Raises ConfigError for an unknown format and for one that does not fit."""
    if output_format not in OUTPUT_FORMATS:
        raise ConfigError(f"unknown format {output_format!r}: expected one of {', '.join(OUTPUT_FORMATS)}")
    chosen = predictor.formats[0] if output_format == "auto" else output_format
    if chosen not in predictor.formats:
        raise ConfigError(
            f"the format {chosen} does not fit the model, whose task is {predictor.task}: use "
            f"{' or '.join(predictor.formats)}"
        )
    return cast("OutputFormat", chosen)


def _write(
    predictor: SupportsFiles,
    examples: Sequence[Any],
    file: TextIO,
    output_format: OutputFormat,
    batch_tokens: int,
    *,
    pictures: _TreePictures | None = None,
) -> int:
    if output_format == "tsv":
        file.write("index\tprediction\n")
    answers: dict[str, Any] = {}
    table = ReadablePredictions(predictor.labels) if output_format == "table" else None
    without_mask = 0
    with Progress("Predicting", "examples", len(examples)) as progress:
        for number, (example, prediction) in enumerate(_predictions(predictor, examples, batch_tokens)):
            if output_format in SQUAD and isinstance(prediction, AnswerPrediction):
                answers[example.id] = prediction.answer if output_format == "squad" else prediction.nbest()
            elif table is not None:
                file.write(table(example, prediction))
            else:
                file.write(format_prediction(number, example, prediction, output_format))
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
    if output_format in SQUAD:
        file.write(json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
    return len(examples)


def _predictions(
    predictor: SupportsFiles, examples: Sequence[Any], batch_tokens: int
) -> Iterator[tuple[Any, Prediction]]:
    for start in range(0, len(examples), _WINDOW):
        window = examples[start : start + _WINDOW]
        yield from zip(window, predictor.predict(window, batch_tokens=batch_tokens, first=start + 1), strict=True)
