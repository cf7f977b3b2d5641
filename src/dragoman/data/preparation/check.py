"""`check_data`: what cleaning would drop of a corpus."""

from collections.abc import Mapping
from typing import Any, TypeVar

from dragoman.base.log import quietly
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import PYTHON, parse_settings
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.corpora.text_corpus import TextCorpusConfig
from dragoman.data.preparation.cleaner import Cleaner
from dragoman.data.preparation.cleaning import CleaningConfig, PairRules
from dragoman.data.preparation.report import CleaningReport
from dragoman.data.preparation.text_cleaning import TextCleaningConfig, TextRules

C = TypeVar("C", bound=Config)


def check_data(
    corpus: CorpusConfig | TextCorpusConfig | Mapping[str, Any],
    cleaning: CleaningConfig | TextCleaningConfig | Mapping[str, Any] | None = None,
    *,
    quiet: bool = False,
) -> CleaningReport:
    """What cleaning would drop, by rule, with line numbers: of sentence pairs, or of documents of one language.

    corpus: as in `data.train`, such as `{"source": …, "target": …}`; with `text` or `field` it is of one language.
    cleaning: settings of `data.cleaning` (default: its own). The limit on subword tokens is not judged, for there is no
    tokeniser yet. Raises ConfigError for settings that are wrong, DataError for files that cannot be read.
    """
    of_texts = isinstance(corpus, TextCorpusConfig) or (
        not isinstance(corpus, CorpusConfig) and any(corpus.get(key) is not None for key in ("text", "field"))
    )
    with quietly(quiet):
        if of_texts:
            text = _config(corpus, TextCorpusConfig)
            return Cleaner(TextRules(_config(cleaning or {}, TextCleaningConfig), str(text))).run(read_passages(text))
        pairs = _config(corpus, CorpusConfig)
        return Cleaner(PairRules(_config(cleaning or {}, CleaningConfig), str(pairs))).run(read_pairs(pairs))


def _config(given: Config | Mapping[str, Any], kind: type[C]) -> C:
    return given if isinstance(given, kind) else parse_settings(given, kind, PYTHON)  # type: ignore[arg-type]
