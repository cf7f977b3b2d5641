"""Version 1 of the cleaning rules: runs of dragoman 0.1 are resumed with their rules and their prepared data."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from repository import FORMAT_1

from dragoman.base.errors import DataError
from dragoman.base.settings.load import load_settings
from dragoman.data.cleaning.clean import report_cleaning
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.cleaning.rules import PairRules, TextRules
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair, Passage
from dragoman.data.preparation.prepare import prepare
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.bpe import BPEConfig

FIXTURE = FORMAT_1 / "config.yaml"
PAIRS = [(f"The dog number {number} runs.", f"Der Hund Nummer {number} läuft.") for number in range(30)]


def test_stored_settings_without_a_version_have_version_1() -> None:
    stored = load_settings(FIXTURE, [], TranslationRun).with_former_defaults()
    recipe = load_settings(FIXTURE, [], TranslationRun)
    assert (stored.data.cleaning.version, recipe.data.cleaning.version) == (1, 2)
    assert recipe.with_stored_choices(stored).data.cleaning == stored.data.cleaning
    explicit = load_settings(FIXTURE, ["data.cleaning.version=2"], TranslationRun)
    assert explicit.with_stored_choices(stored).data.cleaning.version == 2


def test_version_1_has_the_fingerprint_of_dragoman_0_1() -> None:
    """The names of the folders were recorded with dragoman 0.1."""
    assert CleaningConfig(version=1).fingerprint("duplicates_between") == (
        '{"enabled":true,"empty":true,"max_tokens":250,"max_words":200,"max_characters":2000,"max_ratio":4.0,'
        '"duplicates":true,"broken_utf8":"skip","control_characters":true,"wrong_script":true,"source_scripts":[],'
        '"target_scripts":[],"script_share":0.1,"copied_words":3}'
    )
    assert TextCleaningConfig(version=1).fingerprint("duplicates_between") == (
        '{"enabled":true,"empty":true,"duplicates":true,"broken_utf8":"skip","control_characters":true,'
        '"wrong_script":true,"scripts":[],"script_share":0.1}'
    )
    assert CleaningConfig().fingerprint() != CleaningConfig(version=1).fingerprint()


def test_version_1_drops_what_it_dropped() -> None:
    odd = [
        ("a dog\f here", "ein Hund hier"),
        ("No.", "Das ist aber eine sehr lange Antwort auf die Frage."),
        ("コーヒー", "Kaffee"),
        ("The cat sleeps now.", "The cat sleeps now."),
        ("", "x"),
        ("5 &quot;", "5 &quot;"),
    ]
    pairs = [Pair(line, *sides) for line, sides in enumerate([*PAIRS, *odd], start=1)]
    report = report_cleaning(pairs, PairRules(CleaningConfig(version=1)), workers=0)
    assert {rule: lines.tolist() for rule, lines in report.dropped.items()} == {
        "control_characters": [31],
        "max_ratio": [32],
        "wrong_script": [33],
        "copied_words": [34],
        "empty": [35],
    }
    assert (report.found, report.details) == ({}, {})
    documents = [Passage(1, "one\ftwo"), Passage(2, "three"), Passage(3, " ")]
    texts = report_cleaning(documents, TextRules(TextCleaningConfig(version=1)), workers=0)
    assert texts.counts == {"empty": 1, "control_characters": 1}


def test_scripts_of_languages_do_not_change_version_1() -> None:
    assert CleaningConfig(version=1).with_languages("ja", "de") == CleaningConfig(version=1)
    with pytest.raises(ValidationError, match="unknown script 'jpan' in version 1"):
        CleaningConfig(version=1, source_scripts=("jpan",))
    with pytest.raises(ValidationError, match="does not support `unescape`"):
        CleaningConfig(version=1, unescape=True)


def test_data_prepared_by_an_earlier_version_are_pointed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    corpus, text = CorpusConfig(tsv=tmp_path / "a.tsv"), TextConfig(subword=BPEConfig(size=300))
    hint = "prepared contains this corpus as version 1 of the cleaning rules prepared it"
    old = prepare(corpus, CleaningConfig(version=1), text, tmp_path / "prepared", workers=0)
    assert hint not in " ".join(capsys.readouterr().err.split())
    new = prepare(corpus, CleaningConfig(), text, tmp_path / "prepared", workers=0)
    assert old.fingerprints != new.fingerprints
    assert hint in " ".join(capsys.readouterr().err.split())
    again = prepare(corpus, CleaningConfig(version=1), text, tmp_path / "prepared", workers=0)
    assert again.fingerprints == old.fingerprints


def test_findings_are_stored_with_the_prepared_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = [("a dog\f here", "ein Hund hier"), ("&quot;yes&quot;", "&quot;ja&quot;"), ("Собака", "Der Hund")]
    lines = "".join(f"{source}\t{target}\n" for source, target in [*PAIRS, *odd])
    (tmp_path / "a.tsv").write_text(lines, encoding="utf-8")
    corpus, text = CorpusConfig(tsv=tmp_path / "a.tsv"), TextConfig(subword=BPEConfig(size=300))
    arguments = corpus, CleaningConfig(), text, tmp_path / "prepared"
    (first,) = prepare(*arguments, workers=0, languages=("en", "de")).reports
    log = " ".join(capsys.readouterr().err.split())
    assert "U+000C form feed 1 source of" in log
    assert (
        "contain the escape &quot;. The model learns to write it unless data.cleaning.unescape=true replaces it" in log
    )
    assert first.counts == {"wrong_script": 1}
    (second,) = prepare(*arguments, workers=0, languages=("en", "de")).reports
    assert second.to_json() == first.to_json() and second.table() == first.table()
    assert "Data: reused" in capsys.readouterr().err
    (third,) = prepare(*arguments, workers=0, languages=("ru", "de")).reports
    assert third.counts == {"wrong_script": 32}


def test_a_corpus_of_which_nothing_is_kept_names_the_settings(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Собака\tДер Хунд\n\tx\n", encoding="utf-8")
    corpus, text = CorpusConfig(tsv=tmp_path / "a.tsv"), TextConfig(subword=BPEConfig(size=300))
    expected = r"relax data\.cleaning\.empty, data\.cleaning\.wrong_script\.(?s:.*)expected source of .*: Latn"
    with pytest.raises(DataError, match=expected):
        prepare(corpus, CleaningConfig(), text, tmp_path / "prepared", workers=0, languages=("en", "de"))
