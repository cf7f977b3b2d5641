"""`check_data` reports what cleaning would drop from a corpus."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import Field

from dragoman.base.errors import ConfigError
from dragoman.base.log import quietly, warn
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import PYTHON, Overrides, parse_settings
from dragoman.data.cleaning.clean import report_cleaning
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.cleaning.report import CleaningReport
from dragoman.data.cleaning.rules import PairRules, TextRules
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.held_out.mixed import MixedSidesDetector
from dragoman.statistical.alignment.pair_scoring import pair_scoring
from dragoman.tasks.train import Recipe, load_recipe
from dragoman.text.normalization import Normalization

C = TypeVar("C", bound=Config)


class CheckedPairData(Config):
    """The settings of `data` of a training run that determine which sentence pairs are kept."""

    train: CorpusConfig = Field(description="Corpus to check.")
    cleaning: CleaningConfig = Field(default=CleaningConfig(), description="Cleaning rules.")
    source_language: str | None = Field(default=None, description="Language of the source, such as ja.")
    target_language: str | None = Field(default=None, description="Language of the target, such as zh.")


class CheckedTextData(Config):
    """The settings of `data` of a training run that determine which documents of plain text are kept."""

    train: TextCorpusConfig = Field(description="Text to check.")
    cleaning: TextCleaningConfig = Field(default=TextCleaningConfig(), description="Cleaning rules.")
    language: str | None = Field(default=None, description="Language of the text.")


class CheckedNormalization(Config):
    """The settings of `text` of a training run that determine what is kept."""

    normalization: Normalization = Field(default="nfc", description="Unicode normalisation.")


class CheckedPairs(Config):
    """Settings of `dragoman data check` for sentence pairs, with the keys of a training run."""

    data: CheckedPairData = Field(description="Corpus, cleaning and languages.")
    text: CheckedNormalization = Field(default=CheckedNormalization(), description="Normalisation.")


class CheckedText(Config):
    """Settings of `dragoman data check` for plain text, with the keys of a training run."""

    data: CheckedTextData = Field(description="Text, cleaning and language.")
    text: CheckedNormalization = Field(default=CheckedNormalization(), description="Normalisation.")


def check_data(
    corpus: CorpusConfig | TextCorpusConfig | Mapping[str, Any],
    cleaning: CleaningConfig | TextCleaningConfig | Mapping[str, Any] | None = None,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    language: str | None = None,
    normalization: Normalization = "nfc",
    quiet: bool = False,
) -> CleaningReport:
    """Return a report of the sentence pairs or documents that cleaning would drop, by rule and with line numbers.

    corpus: as in `data.train`, such as `{"source": …, "target": …}`. A corpus with `text` or `field` is plain text.
    cleaning: settings of `data.cleaning` that differ from the defaults. The limit on subword tokens is not checked,
    because there is no tokeniser yet. source_language, target_language: languages of pairs, as in `data`. language:
    language of plain text. Text in scripts of other languages is dropped. normalization: as `text.normalization`. Warns
    if the sides of some pairs seem to be exchanged.

    Raises ConfigError for invalid settings, DataError for files that cannot be read, and ModelError if
    `cleaning.aligner` is not an aligner.

    >>> from dragoman import check_data
    >>> report = check_data({"source": "train.en", "target": "train.de"}, {"max_words": 6})
    >>> report.kept < report.total
    True
    >>> report.counts["max_words"] > 0
    True
    """
    is_text = isinstance(corpus, TextCorpusConfig) or (
        not isinstance(corpus, CorpusConfig) and any(corpus.get(key) is not None for key in ("text", "field"))
    )
    with quietly(quiet):
        if is_text:
            text = config_of(corpus, TextCorpusConfig)
            rules = config_of(cleaning or {}, TextCleaningConfig).with_languages(language)
            text_rules = TextRules(rules, str(text), single_lines=text.jsonl is not None)
            return report_cleaning(read_passages(text), text_rules, normalization=normalization)
        pairs = config_of(corpus, CorpusConfig)
        languages = pairs.languages(source_language, target_language)
        config = config_of(cleaning or {}, CleaningConfig).with_languages(*languages)
        pair_rules = PairRules(config, str(pairs), side_names=pairs.side_names)
        scoring = pair_scoring(config)
        detector = MixedSidesDetector()
        watched = detector.watch(read_pairs(pairs))
        report = report_cleaning(watched, pair_rules, normalization=normalization, scoring=scoring)
        if (mixed := detector.finish()) is not None:
            warn(f"{pairs}: {mixed.describe()}.")
        return report


def check_recipe(recipe: Recipe, overrides: Overrides = ()) -> Iterator[tuple[str, CleaningReport]]:
    """Yield the report of each corpus of a recipe, with its setting and name, such as `data.train: corpus.tsv`.

    Validation sets are checked like training corpora. recipe, overrides: as in `train`. Raises ConfigError for invalid
    settings and for a task that does not learn from sentence pairs or plain text, and the errors of `check_data`.
    """
    run = load_recipe(recipe, overrides)
    data = run.data
    sets = [("train", each) for each in getattr(data, "corpora", ())]
    sets += [("valid", each) for each in getattr(data, "valid_sets", ())]
    if not sets or not all(isinstance(corpus, CorpusConfig | TextCorpusConfig) for _, corpus in sets):
        raise ConfigError(
            f"the task {run.task.kind} learns neither from sentence pairs nor from plain text, which are what this "
            "command checks"
        )
    languages = {name: getattr(data, name, None) for name in ("source_language", "target_language", "language")}
    text = getattr(run, "text", CheckedNormalization())
    settings: dict[str, Any] = {**languages, "normalization": getattr(text, "normalization", "nfc")}
    for name, corpus in sets:
        yield f"data.{name}: {corpus}", check_data(corpus, data.cleaning, **settings)


def config_of(values: Config | Mapping[str, Any], config: type[C]) -> C:
    """Return values as a config. Raises ConfigError if they are invalid."""
    if isinstance(values, config):
        return values
    return parse_settings(values, config, PYTHON)  # type: ignore[arg-type]
