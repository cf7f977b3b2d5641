"""Several validation sets: their means, and a resumed run with tagged corpora and sets equals an uninterrupted one."""

import math
from pathlib import Path

import pytest
import torch
from training_runs import RUN, SETTINGS, outcome, write_corpus

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.metrics.registry import METRICS
from dragoman.metrics.score import Score
from dragoman.tasks.corpora.held_out_text import read_held_out as read_texts
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.train import train
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.validation import (
    HeldOutPairs,
    choose_tokenizers,
    read_held_out,
    validation_metrics,
)
from dragoman.training.run.session import warn_of_ties
from dragoman.training.validation import Validation, average_validations

CORPORA = """
data:
  train:
  - {source: train.a, target: train.b, target_language: b, name: forward}
  - {source: train.b, target: train.a, target_language: a, tags: [bt], name: backward}
  valid:
  - {source: valid.a, target: valid.b, target_language: b, name: forward}
  - {source: valid.b, target: valid.a, target_language: a, name: backward}
out: run
"""
SHORT = [*SETTINGS, "train.validate_every=2", "train.checkpoint_every=2", "train.log_every=1", "train.average.count=2"]


def validation(loss: float, bleu: float, seconds: float) -> Validation:
    values = {"loss": (loss, ""), "perplexity": (math.exp(loss), "per token"), "bleu": (bleu, "nrefs:1")}
    values["chrf"] = (2 * bleu, "nrefs:1")
    scores = [METRICS[key].score_of(*value) for key, value in values.items()]
    return Validation(tuple(scores), seconds)


def test_each_set_has_the_same_weight() -> None:
    one, other = validation(2.0, 10.0, 3.0), validation(4.0, 30.0, 4.0)
    mean = average_validations(validation_metrics("bleu"), {"a": one, "b": other})
    assert mean["perplexity"].value == math.exp(3.0) and mean["perplexity"].signature == "per token"
    assert (mean["loss"].value, mean["bleu"].value, mean.seconds) == (3.0, 20.0, 7.0)
    assert mean["bleu"].signature == "mean of 2 sets, nrefs:1"
    assert mean.rank("loss") == (-3.0, 40.0, 20.0)
    assert mean.rank("bleu") == (20.0, 40.0, -3.0)
    expected = {"loss": 4.0, "perplexity": other["perplexity"].value, "bleu": 30.0, "chrf": 60.0}
    assert mean.log_line()["valid_sets"]["b"] == expected
    assert "valid_sets" not in one.log_line()


ESCAPED = ["a &quot;dog&quot; ran\x0c", "two\u00ad dogs", ""]


@pytest.mark.parametrize(
    ("settings", "expected", "count"),
    [
        ([], ["a &quot;dog&quot; ran", "two dogs", ""], 2),
        (["data.cleaning.unescape=true"], ['a "dog" ran', "two dogs", ""], 2),
        (
            ["data.cleaning.control_characters=false", "data.cleaning.unescape=true"],
            ['a "dog" ran\x0c', *ESCAPED[1:]],
            1,
        ),
        (["data.cleaning.enabled=false", "data.cleaning.unescape=true"], ESCAPED, 0),
    ],
)
def test_validation_sets_are_repaired_like_the_training_corpora(
    settings: list[str], expected: list[str], count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "valid.a", tmp_path / "valid.b"
    for path in (source, target):
        path.write_text("\n".join(ESCAPED) + "\n")
    values = [f"data.train.source={source}", f"data.train.target={target}", "out=run", *settings]
    values += [f"data.valid.source={source}", f"data.valid.target={target}"]
    (held_out,) = read_held_out(run := load_settings(None, values, TranslationRun), run.data.valid_sets)
    assert (held_out.sources, held_out.targets) == (expected, expected)
    message = f"{target}: {count} of 3 texts are repaired like the training corpora"
    assert (message in capsys.readouterr().err) == (count > 0)
    text = [f"data.train.text={source}", f"data.valid.text={source}", "out=run", *settings]
    run = load_settings(None, ["task.kind=language_model", *text], LanguageModelRun)
    assert [each.documents for each in read_texts(run.data.valid_sets, run.data.cleaning)] == [expected]


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a run."""
    write_corpus(tmp_path, 60)
    (tmp_path / "recipe.yaml").write_text(CORPORA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(*settings: str) -> TranslationRun:
    return load_settings(Path("recipe.yaml"), [*SHORT, *settings], TranslationRun)


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(corpora: Path) -> None:
    threads = torch.get_num_threads()
    try:
        train(config("train.max_steps=4"))
        whole = outcome(corpora)
        (corpora / RUN).rename(corpora / "whole")
        train(config("train.max_steps=2"))
        train(config("train.max_steps=4"), resume=True)
    finally:
        torch.set_num_threads(threads)
    again = outcome(corpora)
    assert again["model.safetensors"] == whole["model.safetensors"]
    assert again["tokenizer.json"] == whole["tokenizer.json"]
    assert [line for line in again["log"] if line["step"] == 4] == [line for line in whole["log"] if line["step"] == 4]
    assert b'"tags"' in whole["tokenizer.json"]


@pytest.mark.slow
def test_a_changed_second_set_is_noticed(corpora: Path) -> None:
    threads = torch.get_num_threads()
    try:
        train(config("train.max_steps=2"))
        lines = (corpora / "valid.b").read_text().splitlines()
        (corpora / "valid.b").write_text("".join(f"{line}\n" for line in [*lines[:-1], "another line"]))
        with pytest.raises(ConfigError, match="forward, backward has changed since the run started"):
            train(config("train.max_steps=4"), resume=True)
    finally:
        torch.set_num_threads(threads)


def write_japanese(folder: Path, size: int) -> None:
    """Write a corpus of digits and the same digits in Japanese script, and a validation set."""
    digits = dict(zip("0123456789", "零一二三四五六七八九", strict=True))
    for name, start, count in (("train", 100, size), ("valid", 700, 12)):
        lines = [str(number * 37) for number in range(start, start + count)]
        (folder / f"{name}.en").write_text("".join(f"{' '.join(line)}\n" for line in lines))
        text = "".join("".join(digits[each] for each in line) + "。\n" for line in lines)
        (folder / f"{name}.ja").write_text(text, encoding="utf-8")


JAPANESE = """
data:
  train: {source: train.en, target: train.ja}
  valid: {source: valid.en, target: valid.ja}
  target_language: ja
out: run
"""


def test_validation_uses_the_tokeniser_of_the_target_language_and_stores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_japanese(tmp_path, 60)
    (tmp_path / "recipe.yaml").write_text(JAPANESE)
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    try:
        result = train(config("train.max_steps=2", "data.cleaning.enabled=false"))
        stored = tmp_path / RUN / "config.yaml"
        assert "bleu_tokenizer: ja-mecab" in stored.read_text()
        assert "|tok:ja-mecab-0.996-IPA|" in result.validation["bleu"].signature
        assert result.validation["chrf"].signature.startswith("nrefs:1|")
        card = (tmp_path / RUN / "README.md").read_text()
        assert "tok:ja-mecab-0.996-IPA" in card and "chrF2" in card
        # a resumed run keeps the stored tokeniser
        stored.write_text(stored.read_text().replace("bleu_tokenizer: ja-mecab\n", "bleu_tokenizer: 13a\n"))
        again = train(config("train.max_steps=4", "data.cleaning.enabled=false"), resume=True)
        assert "|tok:13a|" in again.validation["bleu"].signature
        assert "bleu_tokenizer: 13a" in stored.read_text()
    finally:
        torch.set_num_threads(threads)


def test_ties_of_the_deciding_metric_are_broken_by_chrf_and_reported(capfd: pytest.CaptureFixture[str]) -> None:
    keys = ("loss", "perplexity", "bleu", "chrf")
    values = [
        Validation(tuple(_score(key, value) for key, value in zip(keys, row, strict=True)), 0.0)
        for row in ((1.0, 2.7, 0.0, 30.0), (2.0, 7.4, 0.0, 40.0), (1.5, 4.5, 0.0, 20.0))
    ]
    assert max(values, key=lambda each: each.rank("bleu")) is values[1]
    scores = {step: each.rank("bleu") for step, each in enumerate(values)}
    warn_of_ties(scores, values[1], "bleu")
    assert "BLEU was 0.00 in all 3 validations, so chrF2 decided which checkpoint is the best" in " ".join(
        capfd.readouterr().err.split()
    )
    warn_of_ties({**scores, 3: (1.0, 0.0, 0.0)}, values[1], "bleu")
    warn_of_ties({0: scores[0]}, values[0], "bleu")
    assert capfd.readouterr().err == ""


def _score(key: str, value: float) -> Score:
    return METRICS[key].score_of(value)


def test_the_signature_of_a_mean_names_every_tokeniser() -> None:
    scores = [Score("BLEU", value, f"tok:{name}") for value, name in ((10.0, "zh"), (20.0, "13a"), (30.0, "zh"))]
    mean = METRICS["bleu"].mean(scores, {})
    assert mean is not None and mean.signature == "mean of 3 sets, tok:zh, tok:13a"


def held_out(target: str, **corpus: str) -> HeldOutPairs:
    fields = corpus if "pairs" in corpus else {"source": "a", "target": "b", **corpus}
    return HeldOutPairs(CorpusConfig.model_validate(fields), ["a line"], [target])


def test_each_set_has_the_tokeniser_of_its_own_language(capfd: pytest.CaptureFixture[str]) -> None:
    sets = [
        held_out("猫在睡觉", target_language="zho_Hans"),
        held_out("the cat sleeps", target_language="en"),
        held_out("猫が寝ている", pairs="memory.tmx", source_code="en-US", target_code="ja-JP"),
    ]
    assert choose_tokenizers(sets, None) == ["zh", "13a", "ja-mecab"]
    assert capfd.readouterr().err == ""
    assert choose_tokenizers(sets[:2], None, "intl") == ["intl", "intl"]
    # the same note of several sets is printed once
    assert choose_tokenizers([held_out("แมวนอน")] * 2, "th") == ["char", "char"]
    assert capfd.readouterr().err.count("sacreBLEU has no tokeniser for the language th") == 1
    assert choose_tokenizers([held_out("แมวนอน")], None) == ["char"]
    assert "no target language is set" in " ".join(capfd.readouterr().err.split())


def test_blank_references_of_a_validation_set_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "valid.a").write_text("one\ntwo\n\nfour\n")
    (tmp_path / "valid.b").write_text("eins\n\n\nvier\n")
    data = {"train": {"source": "train.a", "target": "train.b"}, "valid": {"source": "valid.a", "target": "valid.b"}}
    run = TranslationRun.model_validate({"data": data, "out": "run"})
    (sides,) = read_held_out(run, run.data.valid_sets)
    assert sides.targets == ["eins", "", "", "vier"]
    assert "1 of 4 references are blank (valid.a + valid.b, first in line 2)" in capfd.readouterr().err
