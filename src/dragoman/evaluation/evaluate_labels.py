"""`evaluate_labels` compares the predictions of models, or of other programs in files, with labels."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dragoman.base.errors import ConfigError, reject_options
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.marks import Mark
from dragoman.base.notebook import Card, Note, Shown
from dragoman.base.settings.load import Overrides
from dragoman.base.table import Table
from dragoman.checkpoint.folder import read_config
from dragoman.evaluation.label_files.score import score_label_files
from dragoman.evaluation.stored_test_set import stored_examples
from dragoman.evaluation.test_set import warn_of_size
from dragoman.inference.abilities import LoadedObject, SupportsEvaluate, SupportsVectors, missing_members
from dragoman.inference.load import kind_of, model_for
from dragoman.inference.prediction.heads.regression import label_value
from dragoman.inference.prediction.parts import task_names
from dragoman.inference.prediction.text_vectors import read_texts, similarities
from dragoman.metrics.labels.report import Report, compare
from dragoman.metrics.labels.scoring import similarity_report
from dragoman.metrics.resampling import Comparison
from dragoman.metrics.score import signatures
from dragoman.tasks.seeds import SeedScore, seed_folders

AnyPredictor = str | Path | LoadedObject
"""A model folder, or a model in memory."""


@dataclass(frozen=True)
class LabelEvaluation(Shown):
    """The scores of one or more models on the same examples, and comparisons of each model with the first.

    models: names of the models, or of the files with predictions, in order. runs: the folder whose runs with several
    seeds trained the models; empty for models that are compared.
    """

    models: tuple[str, ...]
    reports: tuple[Report, ...]
    comparisons: tuple[tuple[Comparison, ...], ...]
    runs: str = ""

    def __str__(self) -> str:
        if self.runs:
            heading, table = self._summary_table()
            return "\n".join([heading, table.text(), *self._signatures()])
        lines = []
        for name, report in zip(self.models, self.reports, strict=True):
            lines += [name, report.text()]
        return "\n".join([*lines, *self._comparison_lines()])

    def marks(self) -> list[Mark]:
        """Return the significance of each comparison. See `Marked`."""
        report = self.reports[0]
        return [each.mark(report.examples, report.unit) for compared in self.comparisons for each in compared]

    @property
    def summary(self) -> dict[str, SeedScore]:
        """The scores over all models, with means and standard deviations, by key. Undefined values are left out."""
        kept: dict[str, SeedScore] = {}
        for first in self.reports[0].scores:
            scores = [score for report in self.reports if (score := report[first.key]).is_defined]
            if len(scores) > 1:
                kept[first.key] = SeedScore(scores[0], tuple(score.value for score in scores))
        return kept

    def card(self) -> Card:
        """Return the summary of the seeds, or the reports and comparisons."""
        if self.runs:
            heading, table = self._summary_table()
            return Card(heading, [table, *map(Note, self._signatures())])
        reports = [Card(name, [each.card()]) for name, each in zip(self.models, self.reports, strict=True)]
        return Card("Evaluation", [*reports, *self._comparison_lines()])

    def _comparison_lines(self) -> Iterator[str]:
        report = self.reports[0]
        for name, comparisons in zip(self.models[1:], self.comparisons, strict=True):
            yield f"{name} against {self.models[0]}, paired bootstrap"
            yield from (f"  {each.describe(report.examples, report.unit)}" for each in comparisons)

    def _summary_table(self) -> tuple[str, Table]:
        """Return the means and standard deviations over the seeds, with a heading."""
        first = self.reports[0]
        baseline = {} if first.baseline is None else first.baseline.values
        heading = f"{self.runs}: {len(self.models)} seeds, {first.examples:,} {first.unit}; mean ± sd over the seeds"
        if first.baseline is not None:
            heading += f"; baseline: {first.baseline.description}"
        rows = [["metric", "mean", "sd", "lowest", "highest", "baseline"]]
        for key, each in self.summary.items():
            constant = baseline.get(key)
            values = [each.mean, each.deviation, min(each.values), max(each.values)]
            shown = [f"{value:.{each.score.digits}f}" for value in values]
            shown.append("–" if constant is None else f"{constant:.{each.score.digits}f}")
            rows.append([each.score.name, *shown])
        return heading, Table(rows, right=1)

    def _signatures(self) -> list[str]:
        return signatures(each.score for each in self.summary.values())

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        seeds = {
            key: {"mean": each.mean, "sd": each.deviation, "values": list(each.values)}
            for key, each in self.summary.items()
        }
        return {
            **({"seeds": seeds} if self.runs else {}),
            "models": [
                {"model": name, **report.as_json()} for name, report in zip(self.models, self.reports, strict=True)
            ],
            "comparisons": []
            if self.runs
            else [
                {"first": self.models[0], "second": name, "metrics": [each.as_json() for each in comparisons]}
                for name, comparisons in zip(self.models[1:], self.comparisons, strict=True)
            ],
        }


def evaluate_labels(
    models: AnyPredictor | Sequence[AnyPredictor] | None = None,
    test: str | Path | None = None,
    settings: Overrides = (),
    *,
    hypothesis: str | Path | Sequence[str | Path] = (),
    prm: str | Path | None = None,
    task: str | None = None,
    vectors: bool = False,
    device: str | None = None,
    threads: int | None = None,
    engine: str = "auto",
    precision: str = "float32",
    quiet: bool = False,
) -> LabelEvaluation:
    """Compare predictions with the labels of a test set, like `dragoman evaluate labels`.

    The predictions are those of one or more models, or those of any program in files. Each model or file is compared
    with the first by paired bootstrap.

    models: model folders or predictors; or the folder of a run with several `seeds`, whose models are evaluated
    together, with means and standard deviations. test: a file in any format of a labelled corpus; for models that
    classify the nodes of a graph, the file of the nodes; None: the examples that the run of the first model held out
    for testing. settings: the settings of the corpus, such as
    `{"columns.text": "review"}`; for a graph, the file of the edges (`edges`) and the set of the nodes (`split`, by
    default test). hypothesis: files with predictions, without models. prm: a parameter file of EVALB, for trees in
    files (default: the rules of COLLINS.prm). task: name of the task of models with several tasks; for files, the task
    if their contents do not determine it, one of `LABEL_TASKS`. vectors: compare the cosine of the vectors of the two
    texts of each pair with the labels, which are numbers, instead of predictions; the models
    need no head. engine, precision: as in `Predictor.load`, for model folders. Raises ConfigError if the models have
    different kinds of heads, DataError if the file cannot be read or lacks labels, and the errors of `Predictor.load`.

    >>> from dragoman import evaluate_labels
    >>> evaluation = evaluate_labels("runs/labels", "reviews-test.tsv")
    >>> print(evaluation)
    runs/labels
    classification, 60 texts; 95% intervals of 1,000 bootstrap samples (seed 12345); baseline: always 'positive'
    ...
    """
    if hypothesis:
        if models is not None:
            raise ConfigError("--hypothesis has the predictions: leave out the model, or --hypothesis")
        reject_options({"--vectors": vectors or None}, "with a model")
        with quietly(quiet):
            return _evaluate_files(hypothesis, test, settings, task, None if prm is None else Path(prm))
    reject_options({"--prm": prm}, "with --hypothesis")
    if models is None:
        raise ConfigError("there is nothing to evaluate: give a model folder, or predictions with --hypothesis FILE")
    listed = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    runs = ""
    if len(listed) == 1 and isinstance(listed[0], str | Path) and (seeds := seed_folders(listed[0])):
        runs, listed = str(listed[0]), [*seeds]
    options: dict[str, Any] = {
        name: each for name, each in (("engine", engine), ("precision", precision)) if each not in _DEFAULTS
    }
    with quietly(quiet):
        use_threads(threads)
        if test is None:
            if not isinstance(listed[0], str | Path):
                raise ConfigError("a model in memory has no test set of its own: give `test`")
            own = stored_examples(Path(listed[0]), task)
            if len(own) > 1:
                listed_files = ", ".join(str(each.path) for each in own)
                raise ConfigError(f"{listed[0]} has several test sets, choose one of them or a task: {listed_files}")
            test, settings, task = own[0]
        names, reports = [], []
        tasks: set[str] = set()
        for number, model in enumerate(listed, 1):
            names.append(str(model) if isinstance(model, str | Path) else f"model {number}")
            loaded = load_labelled(model, device, task, sole=len(listed) == 1, vectors=vectors, options=options)
            tasks.add("vectors" if vectors else loaded.task)
            check_one_kind(tasks)
            reports.append(
                _compare_vectors(loaded, test, settings) if vectors else loaded.evaluate_file(test, settings)
            )
        if len(reports) > 1 and not runs:
            warn_of_size(reports[0].examples, reports[0].unit)
    comparisons = [] if runs else [tuple(compare(reports[0], other)) for other in reports[1:]]
    return LabelEvaluation(tuple(names), tuple(reports), tuple(comparisons), runs)


def _evaluate_files(
    hypothesis: str | Path | Sequence[str | Path],
    test: str | Path | None,
    settings: Overrides,
    task: str | None,
    parameters: Path | None,
) -> LabelEvaluation:
    """Return the scores of the predictions in files."""
    files = [Path(hypothesis)] if isinstance(hypothesis, str | Path) else [Path(each) for each in hypothesis]
    reports = score_label_files(None if test is None else Path(test), files, settings, task, parameters)
    if len(reports) > 1:
        warn_of_size(reports[0].examples, reports[0].unit)
    comparisons = [tuple(compare(reports[0], other)) for other in reports[1:]]
    return LabelEvaluation(tuple(map(str, files)), tuple(reports), tuple(comparisons))


_DEFAULTS = ("auto", "float32")
"""Values of options with which a loader is not called, because a kind may not have them."""


def load_labelled(
    model: AnyPredictor,
    device: str | None,
    task: str | None,
    *,
    sole: bool,
    vectors: bool = False,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> SupportsEvaluate:
    """Return a model that compares its predictions with labels. sole: whether it is the only one.

    Raises ConfigError for a model without this comparison, and for options of a model of texts with one of graphs.
    """
    loaded: LoadedObject
    if "classify_nodes" in kind_of(model).abilities:
        reject_options({"--vectors": vectors or None, "--task": task}, "with a model of texts")
        loaded = model_for("classify_nodes", model, device)
    else:
        own_task = _task_of(model, task, sole)
        chosen: dict[str, Any] = {**options, **({} if own_task is None else {"task": own_task})}
        loaded = model_for("predict", model, device, **chosen)
    if not isinstance(loaded, SupportsEvaluate):
        missing = ", ".join(missing_members(loaded, SupportsEvaluate))
        raise ConfigError(f"{model} is {loaded.kind.noun}, whose predictions are not evaluated: it has no {missing}")
    return loaded


def _compare_vectors(loaded: LoadedObject, test: str | Path, settings: Overrides) -> Report:
    """Compare the similarities of the vectors of pairs of texts with their labels."""
    if not isinstance(loaded, SupportsVectors):
        raise ConfigError(f"the model is {loaded.kind.noun}, which has no vectors of texts: leave out --vectors")
    pairs = read_texts(test, settings, labelled=True)
    return similarity_report(list(map(label_value, pairs)), similarities(loaded, pairs))


def check_one_kind(kinds: Set[str]) -> None:
    """Raise ConfigError if the models have heads of different kinds."""
    if len(kinds) > 1:
        raise ConfigError(
            f"the models have heads of different kinds ({', '.join(sorted(kinds))}): compare models of one kind"
        )


def _task_of(model: AnyPredictor, task: str | None, sole: bool) -> str | None:
    """Return the task of a model. It is None for a model with a single task, unless it is the sole model."""
    if task is None or sole or not isinstance(model, str | Path):
        return task
    return task if task_names(read_config(Path(model))["model"]) else None
