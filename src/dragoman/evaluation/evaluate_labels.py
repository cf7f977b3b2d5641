"""`evaluate_labels` compares the predictions of models with labels."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import Overrides
from dragoman.checkpoint.folder import read_config
from dragoman.evaluation.test_set import warn_of_size
from dragoman.metrics.bootstrap import Comparison
from dragoman.metrics.labels.report import Report, compare
from dragoman.metrics.labels.scoring import similarity_report
from dragoman.prediction.heads.regression import label_value
from dragoman.prediction.heads.report import compare_with_labels
from dragoman.prediction.parts import task_names
from dragoman.prediction.predict import read_examples
from dragoman.prediction.predictor import Predictor
from dragoman.prediction.vectors import read_texts, similarities


@dataclass(frozen=True)
class LabelEvaluation:
    """The measures of one or more models on the same examples, and comparisons of each model with the first.

    models: names of the models, in order.
    """

    models: tuple[str, ...]
    reports: tuple[Report, ...]
    comparisons: tuple[tuple[Comparison, ...], ...]

    def __str__(self) -> str:
        lines = []
        for name, report in zip(self.models, self.reports, strict=True):
            lines += [name, report.text()]
        for name, comparisons in zip(self.models[1:], self.comparisons, strict=True):
            lines.append(f"{name} against {self.models[0]}, paired bootstrap")
            report = self.reports[0]
            lines += [f"  {each.describe(report.examples, report.unit)}" for each in comparisons]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {
            "models": [
                {"model": name, **report.as_json()} for name, report in zip(self.models, self.reports, strict=True)
            ],
            "comparisons": [
                {"first": self.models[0], "second": name, "metrics": [asdict(each) for each in comparisons]}
                for name, comparisons in zip(self.models[1:], self.comparisons, strict=True)
            ],
        }


def evaluate_labels(
    models: str | Path | Predictor | Sequence[str | Path | Predictor],
    test: str | Path,
    settings: Overrides = (),
    *,
    task: str | None = None,
    vectors: bool = False,
    device: str | None = None,
    threads: int | None = None,
    engine: str = "auto",
    precision: str = "float32",
    quiet: bool = False,
) -> LabelEvaluation:
    """Compare the predictions of one or more models with the labels of a test set, like `dragoman evaluate --test`.

    test: a file in any format of a labelled corpus. settings: the settings of the corpus, such as
    `{"columns.text": "review"}`. task: name of the task of models with several tasks. vectors: compare the cosine of
    the vectors of the two texts of each pair with the labels, which are numbers, instead of predictions; the models
    need no head. engine, precision: as in `Predictor.load`, for model folders. Raises ConfigError if the models have
    different kinds of heads, DataError if the file cannot be read or lacks labels, and the errors of `Predictor.load`.
    """
    listed = [models] if isinstance(models, str | Path | Predictor) else list(models)
    with quietly(quiet):
        use_threads(threads)
        names, reports = [], []
        kinds: set[str] = set()
        for number, model in enumerate(listed, 1):
            predictor = model
            if not isinstance(predictor, Predictor):
                own_task = _task_of(predictor, task, sole=len(listed) == 1)
                predictor = Predictor.load(predictor, device, task=own_task, engine=engine, precision=precision)
            kinds.add("vectors" if vectors else predictor.head.kind)
            if len(kinds) > 1:
                raise ConfigError(
                    f"the models have heads of different kinds ({', '.join(sorted(kinds))}): compare models of one kind"
                )
            names.append(f"model {number}" if isinstance(model, Predictor) else str(model))
            if vectors:
                pairs = read_texts(test, settings, labelled=True)
                reports.append(similarity_report(list(map(label_value, pairs)), similarities(predictor, pairs)))
                continue
            examples = read_examples(predictor, test, settings, labelled=True)
            reports.append(compare_with_labels(predictor.head, examples, predictor.predict(examples)))
        if len(reports) > 1:
            warn_of_size(reports[0].examples, reports[0].unit)
    comparisons = [tuple(compare(reports[0], other)) for other in reports[1:]]
    return LabelEvaluation(tuple(names), tuple(reports), tuple(comparisons))


def _task_of(folder: str | Path, task: str | None, sole: bool) -> str | None:
    """Return the task of a model. It is None for a model with a single task, unless it is the sole model."""
    if task is not None and not sole and not task_names(read_config(Path(folder))["model"]):
        return None
    return task
