"""The default cleaning rules keep good corpora intact."""

import os
from pathlib import Path

import pytest
from benchmark_modules import benchmark_modules

from dragoman.data.cleaning.clean import report_cleaning
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.cleaning.rules import PairRules, TextRules
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages, read_texts
from dragoman.data.corpora.readers import read_pairs
from dragoman.text.vocabularies.character import CharacterConfig

ROOT = os.environ.get("DRAGOMAN_DATA")
pytestmark = pytest.mark.skipif(ROOT is None, reason="DRAGOMAN_DATA does not say where the corpora are")


@pytest.mark.slow
def test_multi30k_keeps_all_but_two_bad_pairs_and_three_duplicates() -> None:
    folder = Path(str(ROOT)) / "multi30k"
    report = report_cleaning(
        read_pairs(CorpusConfig(source=folder / "train.en.gz", target=folder / "train.de.gz")),
        PairRules(CleaningConfig()),
    )
    assert report.total == 29_000
    assert report.counts == {"max_ratio": 2, "duplicates": 3}


def test_tatoeba_keeps_every_pair() -> None:
    report = report_cleaning(
        read_pairs(CorpusConfig(pairs=Path(str(ROOT)) / "tatoeba" / "dev.en-de.tsv.gz")),
        PairRules(CleaningConfig()),
    )
    assert report.total > 1000
    assert report.counts == {}


@pytest.mark.parametrize(
    "languages", [("cmn_hans", "mya"), ("en", "bod"), ("jpn", "tha"), ("amh", "kor"), ("mal", "arb")]
)
def test_translations_between_all_kinds_of_scripts_are_kept(languages: tuple[str, str]) -> None:
    """Here, true pairs are kept, and shuffled pairs of unlike length found. The benchmark cleans all pairs."""
    with benchmark_modules(["."], ["cleaning_languages"]) as modules:
        benchmark = modules.cleaning_languages
        result = benchmark.clean_languages(languages, benchmark.read_texts(Path(str(ROOT)) / "udhr"), 2.5, 1)
    assert (result.pairs >= 48, result.rules.total()) == (True, 0)
    assert result.found == result.unlike
    assert result.unlike[1.0] > 5


def test_wikitext_and_shakespeare_have_the_published_sizes() -> None:
    """2.09M, 218k and 246k words and ends of lines: Merity et al. 2016, table 1. Shakespeare's characters are kept."""
    names, found = ("train", "valid", "test"), []
    for name in names:
        path = Path(str(ROOT)) / "wikitext-2" / f"wiki.{name}.tokens.gz"
        (whole,) = read_texts(TextCorpusConfig(text=path, documents="file"))
        articles = read_texts(TextCorpusConfig(text=path, documents="file", heading=" = [^=].* = "))
        assert "".join(articles) == whole
        found.append((len(whole.split()) + whole.count("\n"), len(articles)))
    assert found == [(2_088_628, 601), (217_646, 60), (245_569, 60)]
    shakespeare = TextCorpusConfig(text=Path(str(ROOT)) / "shakespeare" / "input.txt.gz", documents="file")
    (text,) = read_texts(shakespeare)
    tokenizer = CharacterConfig(min_frequency=1).learn([text])
    assert (len(text), tokenizer.size) == (1_115_394, 65 + 4)
    assert report_cleaning(read_passages(shakespeare), TextRules(TextCleaningConfig())).kept == 1
