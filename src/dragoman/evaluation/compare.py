"""`compare` scores systems with several seeds on one test set, and tests their differences."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from dragoman.base.errors import ConfigError, reject_options
from dragoman.base.log import info, quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import Overrides
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.inputs import Lines, name_of, read_parallel
from dragoman.data.corpora.readers import read_pairs_instead
from dragoman.evaluation.compare_labels import compare_labels, predicts_labels
from dragoman.evaluation.evaluate import score_outputs, translate_lines
from dragoman.evaluation.stored_test_set import StoredTestSet, stored_test_set
from dragoman.evaluation.system_table import SystemRow, SystemTable
from dragoman.evaluation.systems import System, find_systems
from dragoman.evaluation.test_set import TestSet, warn_of_size
from dragoman.inference.load import model_for
from dragoman.metrics.bleu_tokenizer import AUTO, choose_tokenizer
from dragoman.metrics.metric import Metric, Outputs
from dragoman.metrics.registry import metric_of
from dragoman.metrics.seed_comparison import compare_seeds
from dragoman.metrics.summed import Statistics, SummedMetric

_METRICS = ("bleu", "chrf")
"""Keys of the metrics by which translations are compared by default."""

if TYPE_CHECKING:
    from dragoman.inference.translation.request import RequestSettings


def compare(
    models: Sequence[str | Path],
    *,
    source: Lines | None = None,
    reference: Lines | None = None,
    pairs: Path | str | CorpusConfig | None = None,
    test: Path | str | None = None,
    test_settings: Overrides = (),
    task: str | None = None,
    metric: Sequence[str] | None = None,
    tokenizer: str = AUTO,
    batch_size: int = 64,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    **settings: "Unpack[RequestSettings]",
) -> SystemTable:
    """Score all models on one test set, and compare the first system with every other one.

    models: model folders, folders of runs with several seeds, or folders that contain models. Models whose settings
    differ only in the seed are one system (`find_systems`). source, reference, pairs, tokenizer, batch_size, device,
    threads, settings: as in `evaluate`; without texts, the own test set of the models, which must be the same. metric:
    keys of metrics (default: BLEU and chrF); those that are not sums over sentences are not tested.

    Models that predict labels are compared on labelled examples. test, test_settings: their file and its settings, as
    in `evaluate_labels`; None: those that training held out. task: as in `evaluate_labels`. metric: keys of metrics of
    the report (default: the main ones of the task).

    Raises ConfigError if the models have different test sets or are of different kinds, and the errors of `evaluate`
    and `evaluate_labels`.

    >>> from dragoman import compare
    >>> table = compare(["runs/ende"], source=["The dog sleeps."], reference=["Der Hund schläft."], metric=["chrf"])
    >>> [(row.name, row.seeds) for row in table.rows]
    [('runs/ende', 1)]
    """
    with quietly(quiet):
        use_threads(threads)
        systems = find_systems(models)
        given = {"source": source, "reference": reference, "pairs": pairs, **settings}
        if predicts_labels(systems[0].folders[0]):
            reject_options(given, "with models that translate")
            file = None if test is None else Path(test)
            return compare_labels(systems, file, test_settings, metric=metric, task=task, device=device)
        reject_options({"test": test, "test_settings": test_settings, "task": task}, "with models that predict labels")
        if pairs is not None:
            source, reference = read_pairs_instead(pairs, {"--source": source, "--reference": reference})
        if (source is None) != (reference is None):
            raise ConfigError("a test set has two sides: give both --source and --reference, or none of them")
        if source is None or reference is None:
            own = _common_test_set(systems, settings)
            test_set = TestSet([own.name], own.references, own.sources)
            settings = {**settings, **own.request}  # type: ignore[typeddict-item]
        else:
            named = ("source", source), ("reference", reference)
            sources, references = read_parallel(*named)
            test_set = TestSet([name_of(reference, "the given sentences")], [references], sources)
        warn_of_size(len(test_set))
        translated: list[list[list[str]]] = []
        language = None
        for system in systems:
            translated.append([])
            for number, folder in enumerate(system.folders, start=1):
                info(f"{system.name}: model {number} of {len(system.folders)}, {folder}")
                translator = model_for("translate", folder, device, preferred={"precision": None, "threads": threads})
                language = language or translator.target_language(translator.request(**settings).tags)
                translated[-1].append(translate_lines(translator, test_set.sources or (), batch_size, settings))
        choice = choose_tokenizer(language, test_set.references, tokenizer)
        metrics = {key: metric_of(key).with_tokenizer(choice.name) for key in metric or _METRICS}
        return tabulate(systems, translated, test_set, metrics)


def tabulate(
    systems: Sequence[System],
    translated: Sequence[Sequence[Sequence[str]]],
    test_set: TestSet,
    metrics: Mapping[str, Metric],
) -> SystemTable:
    """Score translations, and compare the first system with each other one. translated: by system and seed."""
    rows: list[SystemRow] = []
    first: dict[str, list[Statistics]] = {}
    references = tuple(test_set.references)
    for system, seeds in zip(systems, translated, strict=True):
        outputs = [Outputs(lines, references, test_set.sources) for lines in seeds]
        measured = {key: [score_outputs(metric, each) for each in outputs] for key, metric in metrics.items()}
        scores = {key: [score for score, _ in pairs] for key, pairs in measured.items()}
        statistics = {key: [each for _, each in pairs if each is not None] for key, pairs in measured.items()}
        compared = {
            key: compare_seeds(first[key], statistics[key], metric)
            for key, metric in metrics.items()
            if first and isinstance(metric, SummedMetric)
        }
        first = first or statistics
        rows.append(SystemRow(system.name, scores, compared))
    return SystemTable(rows, ", ".join(test_set.names), len(test_set))


def _common_test_set(systems: Sequence[System], settings: "RequestSettings") -> StoredTestSet:
    """Return the test set of all models. Raises ConfigError if a model has none or another one."""
    common: StoredTestSet | None = None
    first = systems[0].folders[0]
    remedy = "give the texts to compare the models with: --source FILE --reference FILE"
    for folder in (folder for system in systems for folder in system.folders):
        own = stored_test_set(folder, settings.get("to"), tuple(settings.get("tags") or ()))
        if own is None:
            raise ConfigError(f"{folder} has no test set of its own: {remedy}")
        common = common or own
        if (own.sources, own.references) != (common.sources, common.references):
            raise ConfigError(f"{first} and {folder} have different test sets: {remedy}")
    assert common is not None, "there is a model"
    return common
