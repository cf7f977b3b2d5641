"""`evaluate` scores the translations of one or more systems against references."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack, cast

from dragoman.base.errors import ConfigError, in_files, reject_options
from dragoman.base.log import info, quietly
from dragoman.base.machine.device import use_threads
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.inputs import Lines, name_of, read_parallel
from dragoman.data.corpora.readers import read_pairs_instead
from dragoman.evaluation.examples import ExampleLines
from dragoman.evaluation.results import Evaluation, SystemComparison, SystemScores
from dragoman.evaluation.test_set import TestSet, warn_of_size
from dragoman.metrics.bleu import bleu_by_length
from dragoman.metrics.bleu_tokenizer import AUTO, TokenizerChoice, check_tokenizer, choose_tokenizer
from dragoman.metrics.bootstrap import compare_statistics, with_interval
from dragoman.metrics.metric import Metric, Need, Outputs
from dragoman.metrics.moses_bleu import TokenisedBLEU
from dragoman.metrics.registry import computable_metrics, key_of, metric_of
from dragoman.metrics.score import Score
from dragoman.metrics.summed import Statistics, SummedMetric

if TYPE_CHECKING:
    from dragoman.inference.abilities import SupportsTranslate
    from dragoman.inference.load import Model
    from dragoman.inference.translation.request import RequestSettings

_EXAMPLES = 3
"""Default number of the worst and of the typical lines beside a verdict, so that all fit on a screen."""


def evaluate(
    model: "Model | None" = None,
    *,
    reference: Lines | Sequence[Lines] = (),
    hypothesis: Lines | Sequence[Lines] | Mapping[str, Lines] = (),
    source: Lines | None = None,
    pairs: Path | str | CorpusConfig | None = None,
    metric: Sequence[str] | None = None,
    tokenizer: str = AUTO,
    tokenized: str | None = None,
    batch_size: int = 64,
    system: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    verdict: bool = True,
    examples: int | None = None,
    learning_curve: bool = False,
    quiet: bool = False,
    on_result: Callable[[Evaluation], None] | None = None,
    **settings: "Unpack[RequestSettings]",
) -> Evaluation:
    """Score a model's translations of `source` and existing translations, like `dragoman evaluate`.

    A text is a file (str or Path) or a list of lines. Several texts are a list of Paths or a list of lists.

    model: a model folder, several folders as an ensemble, or a `Translator`; None: only `hypothesis` is scored.
    reference: a text, or several references of the same sentences. Without reference and source, the model folder's own
    test set is scored: the one that its recipe names (`data.test`), or the one that was held out. hypothesis:
    translations by one system or several systems, or a mapping from names of systems to translations. Each system after
    the first is compared with the first by paired bootstrap. source: the source text, which `model` requires with a
    reference; adds BLEU by source length. pairs: the source and the reference in one file of any format
    (`CorpusConfig`), instead of `source` and `reference`. metric: keys of `metrics.registry.METRICS` (default: all
    metrics that can be computed from the texts). tokenizer: sacreBLEU's tokeniser for BLEU; auto: by the model's target
    language, or by the references (`choose_tokenizer`). tokenized: a language; adds BLEU of lowercased, Moses-tokenised
    text. system, device, threads: as in `Translator.load`, for a model folder. verdict: for a model folder, add a
    `Verdict`: a comparison with simple systems, which takes seconds. examples: number of the worst and of the typical
    lines of the first system to add; None: 3 with a verdict, else 0. learning_curve: for a model folder, train its
    system on a quarter and on half of its pairs, and add a `LearningCurve`. on_result: called with the scores by the
    fast metrics, and then with those by the slow ones. settings: beam, length_penalty, coverage_penalty, unknown,
    search, to, tags and divide, as in `Translator.request`; the lines are divided as `dragoman translate` divides
    them.

    Raises DataError for unequal numbers of lines, ConfigError for incompatible arguments, and the errors of
    `Translator`.

    >>> from dragoman import evaluate
    >>> outputs = {"first": ["the dog sleeps here"], "second": ["the cat sleeps"]}
    >>> evaluation = evaluate(reference=["the dog sleeps here"], hypothesis=outputs, metric=["chrf"])
    >>> print(evaluation["chrf"])
    chrF2 = 100.00 (nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:...)
    >>> round(evaluation.comparisons[0].metrics["chrf"].difference)
    -67
    """
    if pairs is not None:
        source, references = read_pairs_instead(pairs, {"--source": source, "--reference": reference})
        reference = [references]
    with quietly(quiet):
        source, reference, settings = _with_own_test_set(model, source, reference, settings)
    named_references, systems = name_texts(reference, "reference"), name_texts(hypothesis, "hypothesis")
    inputs: set[Need] = {"references"} if source is None else {"references", "sources"}
    metrics = _Metrics.of(metric, tokenizer, tokenized, inputs)
    _check_arguments(model, named_references, systems, source, settings)
    if learning_curve and not isinstance(model, str | Path):
        raise ConfigError("--learning-curve trains a model again: give the folder of a single model")
    test_set, translations = _read_texts(named_references, systems, source)
    with quietly(quiet):
        test_set.warn_of_references([lines for _, lines in translations])
        language = None
        if model is not None and source is not None:
            from dragoman.inference.load import model_for  # imports torch

            use_threads(threads)
            preferred = {"precision": None, "threads": threads}
            translator = model_for("translate", model, device, system=system, preferred=preferred)
            language = translator.target_language(translator.request(**settings).tags)
            with in_files(name_of(source, "source")):
                lines = translate_lines(translator, test_set.sources or (), batch_size, settings)
            translations.insert(0, ("model" if translator is model else _model_name(model), lines))
        if len(translations) > 1:
            warn_of_size(len(test_set))
        choice = choose_tokenizer(language, test_set.references, tokenizer)
        has_verdict = verdict and isinstance(model, str | Path)  # whose table has intervals
        scored = _score_in_parts(
            translations,
            test_set,
            metrics.with_tokenizer(choice),
            choice.name,
            on_result,
            intervals=not has_verdict,
        )
        if verdict and isinstance(model, str | Path):
            from dragoman.tasks.verdict.folder import judge_folder  # imports torch

            outputs = Outputs(translations[0][1], tuple(test_set.references), test_set.sources)
            data = ", ".join(test_set.names)
            judged = judge_folder(
                Path(model), outputs, data, choice.name, language=language, system=system, threads=threads
            )
            scored = replace(scored, verdict=judged)
        if learning_curve:
            from dragoman.evaluation.smaller_corpora import measure_learning_curve  # imports torch

            def translate(folder: Path) -> list[str]:
                found = model_for("translate", folder, device, preferred=preferred)
                return translate_lines(found, test_set.sources or (), batch_size, settings)

            curve = measure_learning_curve(
                Path(cast("str | Path", model)),
                system,
                test_set,
                translations[0][1],
                tokenizer=choice.name,
                translate=translate,
            )
            scored = replace(scored, learning_curve=curve)
        count = examples if examples is not None else _EXAMPLES if scored.verdict is not None else 0
        return replace(scored, examples=ExampleLines.of(translations[0][1], test_set, count)) if count else scored


def _with_own_test_set(
    model: "Model | None",
    source: Lines | None,
    reference: Lines | Sequence[Lines],
    settings: "RequestSettings",
) -> "tuple[Lines | None, Lines | Sequence[Lines], RequestSettings]":
    """Return the texts and settings of `evaluate`, with the test set of the model folder if no texts are given."""
    folder = model[0] if isinstance(model, list | tuple) else model
    if source is not None or reference or not isinstance(folder, str | Path):
        return source, reference, settings
    from dragoman.evaluation.stored_test_set import stored_test_set  # imports torch

    own = stored_test_set(Path(folder), settings.get("to"), tuple(settings.get("tags") or ()))
    if own is None:
        return source, reference, settings
    info(f"Test set: {own.name}")
    return own.sources, own.references, cast("RequestSettings", {**settings, **own.request})


@dataclass(frozen=True)
class _Metrics:
    """The metrics of an evaluation. keys: of the registry; others: further metrics by key."""

    keys: tuple[str, ...]
    others: Mapping[str, Metric]

    @classmethod
    def of(cls, keys: Sequence[str] | None, tokenizer: str, tokenized: str | None, inputs: set[Need]) -> Self:
        """Return the metrics for the arguments of `evaluate`. Raises ConfigError for one that lacks an input."""
        chosen = tuple(computable_metrics(inputs) if keys is None else dict.fromkeys(map(key_of, keys)))
        for key in chosen:
            metric_of(key).require(inputs)
        if tokenizer != AUTO:
            check_tokenizer(tokenizer)
        return cls(chosen, {} if tokenized is None else {TokenisedBLEU.key: TokenisedBLEU(tokenized)})

    def with_tokenizer(self, choice: TokenizerChoice) -> dict[str, Metric]:
        """Return all metrics by key, with a tokeniser for BLEU. The choice is reported if a metric depends on it."""
        metrics: dict[str, Metric] = {key: metric_of(key).with_tokenizer(choice.name) for key in self.keys}
        if any(metric_of(key) is not metric for key, metric in metrics.items()):
            choice.report()
        return {**metrics, **self.others}


def _read_texts(
    references: Sequence[tuple[str, Lines]], systems: Sequence[tuple[str, Lines]], source: Lines | None
) -> tuple[TestSet, list[tuple[str, Sequence[str]]]]:
    """Read all texts, and return the test set and the translations of the systems by name.

    Raises DataError for unequal numbers of lines.
    """
    texts = read_parallel(*references, *systems, *([] if source is None else [("source", source)]))
    sources = None if source is None else texts.pop()
    test_set = TestSet([name for name, _ in references], texts[: len(references)], sources)
    names = (name for name, _ in systems)
    return test_set, list(zip(names, texts[len(references) :], strict=True))


def _score_in_parts(
    translations: Sequence[tuple[str, Sequence[str]]],
    test_set: TestSet,
    metrics: Mapping[str, Metric],
    tokenizer: str,
    on_result: Callable[[Evaluation], None] | None,
    *,
    intervals: bool,
) -> Evaluation:
    """Score the translations by the fast metrics and then by the slow ones. tokenizer: of BLEU by source length.

    intervals: as in `score_systems`.
    """
    parts: list[Evaluation] = []
    for is_slow in (False, True):
        chosen = {key: metric for key, metric in metrics.items() if metric.is_slow == is_slow}
        if chosen or (is_slow and not parts):
            part = score_systems(translations, test_set, chosen, None if parts else tokenizer, intervals)
            parts.append(part)
            if on_result is not None:
                on_result(part)
    return Evaluation.merge(parts, list(metrics))


def name_texts(texts: Lines | Sequence[Lines] | Mapping[str, Lines], name: str) -> list[tuple[str, Lines]]:
    """Return pairs of a name and a text. The name of a file is its path; other names are derived from `name`."""
    if isinstance(texts, Mapping):
        return list(texts.items())
    if isinstance(texts, str | Path):
        return [(str(texts), texts)]
    if texts and all(isinstance(text, str) for text in texts):
        return [(name, cast("Lines", texts))]
    return [(name_of(text, f"{name} {number}"), text) for number, text in enumerate(texts, 1)]


def _check_arguments(
    model: object,
    references: Sequence[object],
    systems: Sequence[object],
    source: object,
    settings: Mapping[str, object],
) -> None:
    """Check the arguments before any file is read. Raises ConfigError."""
    if model is None and not systems:
        raise ConfigError("there is nothing to evaluate: give --hypothesis FILE, or a model folder and --source FILE")
    if model is not None and source is None:
        raise ConfigError(
            f"{model} has no test set of its own. To evaluate the model, give the sentences to translate and their "
            "translations: --source FILE --reference FILE; for a language model: dragoman evaluate perplexity"
        )
    if not references:
        raise ConfigError("there is no reference to compare with: give --reference FILE")
    if model is None:
        reject_options(options_by_name(settings), "with a model to translate with")


def options_by_name(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings by the names of their options. The value of an option with its default value is None."""
    names = {name: f"--{name.replace('_', '-')}" for name in settings if name != "divide"}
    options = {option: settings[name] for name, option in names.items()}
    return {**options, "--no-divide": None if settings.get("divide", True) else True}


def translate_lines(
    translator: "SupportsTranslate", sources: Sequence[str], batch_size: int, settings: "RequestSettings"
) -> list[str]:
    """Translate all sources, and report how many lines were translated sentence by sentence."""
    best = [each[0] for each in translator.translate_nbest(sources, translator.request(**settings), batch_size)]
    divided = sum(bool(each.parts) for each in best)
    if divided:
        info(
            f"{divided:,} of {len(best):,} lines have several sentences and were translated sentence by sentence, as "
            "`dragoman translate` does. To translate every line as a whole, use --no-divide."
        )
    return [each.text for each in best]


def _model_name(model: object) -> str:
    return " + ".join(map(str, model)) if isinstance(model, list | tuple) else str(model)


def score_systems(
    translations: Sequence[tuple[str, Sequence[str]]],
    test_set: TestSet,
    metrics: Mapping[str, Metric],
    by_length: str | None,
    intervals: bool = False,
) -> Evaluation:
    """Score all systems, and compare each with the first.

    translations: the name of each system and its translations. by_length: the tokeniser of BLEU by source length, or
    None if it was computed before. intervals: whether scores have the interval of their values on resampled test sets.
    """
    references = test_set.references
    scores, statistics = [], []
    for name, lines in translations:
        outputs = Outputs(lines, tuple(references), test_set.sources)
        measured = {key: score_outputs(metric, outputs, intervals) for key, metric in metrics.items()}
        groups = []
        if by_length is not None and test_set.sources is not None:
            groups = bleu_by_length(test_set.sources, lines, *references, tokenizer=by_length)
        scores.append(
            SystemScores(name, {key: score for key, (score, _) in measured.items()}, tuple(groups), tuple(lines))
        )
        statistics.append({key: rows for key, (_, rows) in measured.items() if rows is not None})
    comparisons = []
    for other, rows in zip(scores[1:], statistics[1:], strict=True):
        compared = {
            key: compare_statistics(statistics[0][key], rows[key], metric, len(references))
            for key, metric in metrics.items()
            if isinstance(metric, SummedMetric)
        }
        comparisons.append(SystemComparison(scores[0].system, other.system, compared, len(test_set)))
    return Evaluation(tuple(scores), tuple(comparisons))


def score_outputs(metric: Metric, outputs: Outputs, interval: bool = False) -> tuple[Score, Statistics | None]:
    """Return the score by a metric, and the statistics that it is computed from if they can be resampled.

    interval: whether the score has the interval of its values on resampled test sets.
    """
    if not isinstance(metric, SummedMetric):
        return metric.score(outputs.hypotheses, *outputs.references, sources=outputs.sources), None
    metric.check(outputs)
    rows = metric.statistics(outputs.hypotheses, *outputs.references)
    score = metric.score_of(metric.exact(rows.sum(0)), metric.signature(len(outputs.references)))
    return with_interval(score, rows, metric) if interval else score, rows
