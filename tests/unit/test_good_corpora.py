"""The default cleaning rules do no harm to good corpora."""

import os
from pathlib import Path

import pytest

from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.preparation.cleaner import Cleaner
from dragoman.data.preparation.cleaning import CleaningConfig, PairRules

ROOT = os.environ.get("DRAGOMAN_DATA")
pytestmark = pytest.mark.skipif(ROOT is None, reason="DRAGOMAN_DATA does not say where the corpora are")


def test_multi30k_keeps_all_but_two_bad_pairs_and_three_duplicates() -> None:
    folder = Path(str(ROOT)) / "multi30k"
    report = Cleaner(PairRules(CleaningConfig())).run(
        read_pairs(CorpusConfig(source=folder / "train.en.gz", target=folder / "train.de.gz"))
    )
    assert report.total == 29_000
    assert report.counts == {"max_ratio": 2, "duplicates": 3}


def test_tatoeba_keeps_every_pair() -> None:
    report = Cleaner(PairRules(CleaningConfig())).run(
        read_pairs(CorpusConfig(tsv=Path(str(ROOT)) / "tatoeba" / "dev.en-de.tsv.gz"))
    )
    assert report.total > 1000
    assert report.counts == {}
