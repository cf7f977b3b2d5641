"""`evaluate` scores systems' translations against references, and reports the scores with their signatures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from dragoman.base.errors import ConfigError, in_files, reject_options
from dragoman.base.log import quietly
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

    system: name of the system. scores: scores by metric key, including that of `tokenized` if requested. by_length:
    BLEU by source length in words, if there is a source. translations: the texts that were scored.
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
    """The comparison of system `second` with system `first`, by metric."""

    first: str
    second: str
    metrics: Mapping[str, Comparison]

    def __str__(self) -> str:
        lines = [f"{self.second} against {self.first}, paired bootstrap"]
        for each in self.metrics.values():
            interval = each.difference_interval
            verdict = "significant at 0.05" if each.p_value < 0.05 else "not significant at 0.05"
            lines.append(
                f"  {each.first.name}: {each.difference:+.2f} (95% of resampled test sets: {interval.low:+.2f} to "
                f"{interval.high:+.2f}), p = {each.p_value:.4f}, {verdict} ({each.first.signature})"
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
    """The scores of all systems, the model first, and the comparison of each later system with the first."""

    systems: tuple[SystemScores, ...]
    comparisons: tuple[SystemComparison, ...]

    def __getitem__(self, metric: str) -> Score:
        """Return the first system's score by a metric's key. Raises KeyError for a metric that was not computed."""
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
    """Score a model's translations of `source`, and given translations, as `dragoman evaluate` does.

    model: a folder, several folders as an ensemble, or a `Translator`; None: only the texts of `hypothesis`.

    A text is a file (str or Path) or a list of lines. Several texts are a list of Paths or of lists: in `reference`,
    several references of the same sentences; in `hypothesis`, translations by several systems, or a mapping from names
    to translations. Each later system is compared with the first by paired bootstrap.

    source: adds BLEU by source length. metric: keys of `metrics.registry.METRICS` (default: all that can be computed
    from the given texts). tokenized: a language; adds BLEU of lowercased, Moses-tokenised text. settings: beam,
    length_penalty, coverage_penalty, unknown, search, to and tags, as in `Translator.request`. device, threads: as in
    `Translator.load`, for a folder.

    Raises DataError for unequal numbers of lines, ConfigError for arguments that exclude each other, and the
    errors of `Translator`.
    """
    references, systems = _each(reference, "reference"), _each(hypothesis, "hypothesis")
    inputs: set[Need] = {"references"} if source is None else {"references", "sources"}
    wanted = list(computable_metrics(inputs) if metric is None else metric)
    for each in wanted:
        metric_of(each).require(inputs)
    _check(model, references, systems, source, settings)
    given = [*references, *systems, *([] if source is None else [("source", source)])]
    texts = read_parallel(*given)
    sources = None if source is None else texts.pop()
    known, outputs = texts[: len(references)], texts[len(references) :]
    named = list(zip((name for name, _ in systems), outputs, strict=True))
    with quietly(quiet):
        if model is not None and source is not None and sources is not None:
            translator = _opened(model, device, threads)
            with in_files(name_of(source, "source")):
                translations = translator.translate(sources, batch_size=batch_size, **settings)
            named.insert(0, ("model" if translator is model else _name(model), translations))
    scored = tuple(_scored(name, lines, known, sources, wanted, tokenized) for name, lines in named)
    first, *others = scored
    return Evaluation(scored, tuple(_compared(first, other, known, wanted) for other in others))


def _each(given: Lines | Sequence[Lines] | Mapping[str, Lines], name: str) -> list[tuple[str, Lines]]:
    """Return texts with their names; a file's name is its path."""
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, str | Path):
        return [(str(given), given)]
    if given and all(isinstance(each, str) for each in given):
        return [(name, cast("Lines", given))]
    return [(name_of(each, f"{name} {number}"), each) for number, each in enumerate(given, 1)]


def _check(
    model: object,
    references: Sequence[object],
    systems: Sequence[object],
    source: object,
    settings: Mapping[str, object],
) -> None:
    """Check the arguments before anything is read."""
    if model is None and not systems:
        raise ConfigError("nothing to evaluate: give --hypothesis FILE, or a model folder and --source FILE")
    if model is not None and source is None:
        raise ConfigError(f"to evaluate the model {model}, give the sentences to translate: --source FILE")
    if not references:
        raise ConfigError("there is nothing to compare with: give --reference FILE")
    if model is None:
        options = {f"--{name.replace('_', '-')}": value for name, value in settings.items()}
        reject_options(options, "with a model to translate with")


def _name(model: object) -> str:
    return " + ".join(map(str, model)) if isinstance(model, list | tuple) else str(model)


def _opened(
    model: "str | Path | Sequence[str | Path] | Translator", device: str | None, threads: int | None
) -> "Translator":
    from dragoman.translation.translator import Translator

    if isinstance(model, Translator):
        return model
    use_threads(threads)
    return Translator.load(model, device, threads=threads)


def _scored(
    name: str,
    lines: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None,
    metric: Sequence[str],
    language: str | None,
) -> SystemScores:
    metrics = {each: metric_of(each) for each in metric}
    if language is not None:
        metrics[TokenisedBLEU.key] = TokenisedBLEU(language)
    scores = {key: each.score(lines, *references, sources=sources) for key, each in metrics.items()}
    by_length = () if sources is None else tuple(bleu_by_length(sources, lines, *references))
    return SystemScores(name, scores, by_length, tuple(lines))


def _compared(
    first: SystemScores, second: SystemScores, references: Sequence[Sequence[str]], metric: Sequence[str]
) -> SystemComparison:
    found: dict[str, Comparison] = {}
    for name in metric:
        if isinstance(metric_of(name), SummedMetric):
            found[name] = paired_bootstrap(first.translations, second.translations, *references, metric=name)
    return SystemComparison(first.system, second.system, found)
