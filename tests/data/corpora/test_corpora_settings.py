"""Settings of one corpus or several: forms, overrides, errors that name the key, and contradictions."""

from pathlib import Path

import pytest

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import dump_settings, load_settings
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.tasks.translation.config import TranslationRun

LIST = """
data:
  train:
  - {source: a.en, target: a.de, name: clean, target_language: de}
  - {pairs: b.tsv, weight: 0.5, tags: [bt], target_language: de}
  - {pairs: c.jsonl.zst, source_column: translation.en, target_column: translation.de, target_language: de}
  - {pairs: d.tmx, source_code: en, target_code: de, target_language: de}
  valid: {source: v.en, target: v.de, target_language: de}
out: run
"""
ONE = "data: {train: {source: a.en, target: a.de}, valid: {source: v.en, target: v.de}}\nout: run\n"


def load(folder: Path, text: str, *overrides: str) -> TranslationRun:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return load_settings(path, list(overrides), TranslationRun)


def test_one_corpus_stays_one_and_a_list_a_list(tmp_path: Path) -> None:
    one = load(tmp_path, ONE)
    assert isinstance(one.data.train, CorpusConfig)
    assert one.data.corpora == (one.data.train,)
    several = load(tmp_path, LIST, "data.train.1.weight=2")
    assert isinstance(several.data.train, tuple)
    assert [str(corpus) for corpus in several.data.corpora] == ["clean", "b.tsv", "c.jsonl.zst", "d.tmx"]
    assert several.data.corpora[1].weight == 2
    assert several.data.corpora[1].all_tags == ("to:de", "bt")
    for config in (one, several):
        assert load(tmp_path, dump_settings(config)) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.train.0.sorce=x", r"unknown setting data\.train\.0\.sorce .*; did you mean data\.train\.0\.source\?"),
        ("data.train.1.weight=0", r"data\.train\.1\.weight: should be greater than 0"),
        ("data.train.1.tags=[two words]", "is not a valid tag"),
        ("data.train.3.target_code=en", "`source_code` and `target_code` are the same"),
        ("data.train.2.source=x", "give either both `source` and `target`, or one of"),
        ("data.train.1.name=clean", "two corpora of data.train are called clean"),
        ("data.train.4.pairs=x", "is a list of length 4"),
        ("data.train=[]", r"data\.train.*at least 1 item"),
        ("data.valid.weight=2", "leave out its weight"),
        ("data.valid.target_language=null", "some corpora have a target_language .de., but v.en . v.de has none"),
        ("data.train.0.target_language=null", "some corpora have a target_language .de., but clean has none"),
        (
            "data.valid=[{pairs: v, target_language: de}, {pairs: v, target_language: de}]",
            "two corpora of data.valid are called v",
        ),
        ("data.temperature=5", "leave out the weight of b.tsv"),
    ],
)
def test_errors_name_their_key(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        load(tmp_path, LIST, override)
    assert "settings are invalid" not in str(error.value)


def test_an_error_in_a_single_corpus_does_not_mention_lists(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^unknown setting data\.train\.piars .*did you mean data\.train\.pairs"):
        load(tmp_path, ONE, "data.train.piars=x")
