"""`evaluate` scores the translations of one or more systems against references."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from dragoman.base.errors import ConfigError, in_files, reject_options
from dragoman.base.log import info, quietly
from dragoman.base.machine.device import use_threads
from dragoman.metrics.bleu import LengthScore, TokenisedBLEU, bleu_by_length
from dragoman.metrics.bootstrap import Comparison, paired_bootstrap
from dragoman.metrics.metric import Need, Score
from dragoman.metrics.registry import computable_metrics, metric_of
from dragoman.metrics.summed import SummedMetric
from dragoman.translation.files.lines import Lines, name_of, read_parallel

if TYPE_CHECKING:
    from dragoman.translation.request import RequestSettings
    from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class SystemScores:
    """The scores of one system.

    system: name of the system. scores: scores by metric key; BLEU of tokenised text is included if `tokenized` was set.
    by_length: BLEU by source length in words; empty if no source was given. translations: the scored translations.
    """

    system: str
    scores: Mapping[str, Score]
    by_length: tuple[LengthScore, ...]
    translations: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        lines = [self.system, *(f"  {score}" for score in self.scores.values())]
        if self.by_length:
            lines.append("  BLEU by source length (words)")
        for group in self.by_length:
            longest = "…" if group.longest is None else f"–{group.longest}"
            lines.append(f"    {group.shortest}{longest:<6} {group.score.value:6.2f}  ({group.sentences} sentences)")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return all values except the translations as JSON types."""
        groups = [
            {"shortest": each.shortest, "longest": each.longest, "sentences": each.sentences, "bleu": each.score.value}
            for each in self.by_length
        ]
        return {
            "system": self.system,
            "scores": [asdict(score) for score in self.scores.values()],
            "by_length": groups,
        }


@dataclass(frozen=True)
class SystemComparison:
    """The comparison of the system `second` with the system `first`. metrics: comparisons by metric key."""

    first: str
    second: str
    metrics: Mapping[str, Comparison]

    def __str__(self) -> str:
        lines = [f"{self.second} against {self.first}, paired bootstrap"]
        for comparison in self.metrics.values():
            interval = comparison.difference_interval
            verdict = "significant at 0.05" if comparison.p_value < 0.05 else "not significant at 0.05"
            first = comparison.first
            lines.append(
                f"  {first.name}: {comparison.difference:+.2f} (95% of resampled test sets: {interval.low:+.2f} to "
                f"{interval.high:+.2f}), p = {comparison.p_value:.4f}, {verdict} ({first.signature})"
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {
            "first": self.first,
            "second": self.second,
            "metrics": [asdict(each) for each in self.metrics.values()],
        }


@dataclass(frozen=True)
class Evaluation:
    """The scores of all systems, and comparisons of each system with the first. A model is always the first system."""

    systems: tuple[SystemScores, ...]
    comparisons: tuple[SystemComparison, ...]

    def __getitem__(self, metric: str) -> Score:
        """Return the first system's score for a metric key. Raises KeyError if the metric was not computed."""
        return self.systems[0].scores[metric]

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.systems, *self.comparisons)))

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {
            "systems": [each.as_json() for each in self.systems],
            "comparisons": [each.as_json() for each in self.comparisons],
        }


def evaluate(
    model: "str | Path | Sequence[str | Path] | Translator | None" = None,
    *,
    reference: Lines | Sequence[Lines],
    hypothesis: Lines | Sequence[Lines] | Mapping[str, Lines] = (),
    source: Lines | None = None,
    metric: Sequence[str] | None = None,
    tokenized: str | None = None,
    batch_size: int = 64,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    **settings: "Unpack[RequestSettings]",
) -> Evaluation:
    """Score a model's translations of `source` and existing translations, like `dragoman evaluate`.

    A text is a file (str or Path) or a list of lines. Several texts are a list of Paths or a list of lists.

    model: a model folder, several folders as an ensemble, or a `Translator`; None: only `hypothesis` is scored.
    reference: a text, or several references of the same sentences. hypothesis: translations by one system or several
    systems, or a mapping from names of systems to translations. Each system after the first is compared with the first
    by paired bootstrap. source: the source text, which `model` requires; adds BLEU by source length. metric: keys of
    `metrics.registry.METRICS` (default: all metrics that can be computed from the texts). tokenized: a language; adds
    BLEU of lowercased, Moses-tokenised text. device, threads: as in `Translator.load`, for a model folder. settings:
    beam, length_penalty, coverage_penalty, unknown, search, to, tags and divide, as in `Translator.request`; the lines
    are divided as `dragoman translate` divides them.

    Raises DataError for unequal numbers of lines, ConfigError for incompatible arguments, and the errors of
    `Translator`.
    """
    named_references, systems = _name_texts(reference, "reference"), _name_texts(hypothesis, "hypothesis")
    inputs: set[Need] = {"references"} if source is None else {"references", "sources"}
    metrics = list(computable_metrics(inputs) if metric is None else metric)
    for key in metrics:
        metric_of(key).require(inputs)
    _check_arguments(model, named_references, systems, source, settings)
    texts = read_parallel(*named_references, *systems, *([] if source is None else [("source", source)]))
    sources = None if source is None else texts.pop()
    references, hypotheses = texts[: len(named_references)], texts[len(named_references) :]
    translations = list(zip((name for name, _ in systems), hypotheses, strict=True))
    with quietly(quiet):
        if model is not None and source is not None and sources is not None:
            translator = _load_translator(model, device, threads)
            with in_files(name_of(source, "source")):
                lines = _translate(translator, sources, batch_size, settings)
            translations.insert(0, ("model" if translator is model else _model_name(model), lines))
    scores = tuple(_score_system(name, lines, references, sources, metrics, tokenized) for name, lines in translations)
    first, *others = scores
    return Evaluation(scores, tuple(_compare_systems(first, other, references, metrics) for other in others))


def _name_texts(texts: Lines | Sequence[Lines] | Mapping[str, Lines], name: str) -> list[tuple[str, Lines]]:
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
        raise ConfigError(f"to evaluate the model {model}, give the sentences to translate: --source FILE")
    if not references:
        raise ConfigError("there is no reference to compare with: give --reference FILE")
    if model is None:
        reject_options(options_by_name(settings), "with a model to translate with")


def options_by_name(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings by the names of their options. The value of an option with its default value is None."""
    names = {name: f"--{name.replace('_', '-')}" for name in settings if name != "divide"}
    options = {option: settings[name] for name, option in names.items()}
    return {**options, "--no-divide": None if settings.get("divide", True) else True}


def _translate(
    translator: "Translator", sources: Sequence[str], batch_size: int, settings: "RequestSettings"
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


def _load_translator(
    model: "str | Path | Sequence[str | Path] | Translator", device: str | None, threads: int | None
) -> "Translator":
    from dragoman.translation.translator import Translator

    if isinstance(model, Translator):
        return model
    use_threads(threads)
    return Translator.load(model, device, precision=None, threads=threads)


def _score_system(
    name: str,
    translations: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None,
    metric_keys: Sequence[str],
    language: str | None,
) -> SystemScores:
    """Compute the scores of one system. language: language of tokenised BLEU, or None."""
    metrics = {key: metric_of(key) for key in metric_keys}
    if language is not None:
        metrics[TokenisedBLEU.key] = TokenisedBLEU(language)
    scores = {key: metric.score(translations, *references, sources=sources) for key, metric in metrics.items()}
    by_length = () if sources is None else tuple(bleu_by_length(sources, translations, *references))
    return SystemScores(name, scores, by_length, tuple(translations))


def _compare_systems(
    first: SystemScores, second: SystemScores, references: Sequence[Sequence[str]], metric_keys: Sequence[str]
) -> SystemComparison:
    """Compare two systems by each metric that paired bootstrap supports."""
    comparisons: dict[str, Comparison] = {}
    for key in metric_keys:
        if isinstance(metric_of(key), SummedMetric):
            comparisons[key] = paired_bootstrap(first.translations, second.translations, *references, metric=key)
    return SystemComparison(first.system, second.system, comparisons)
