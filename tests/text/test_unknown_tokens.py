"""Unknown tokens are counted in every corpus and validation set, reported, and limited."""

from pathlib import Path

import pytest
import yaml

from dragoman import train
from dragoman.base.errors import DataError
from dragoman.data.cleaning.rules import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.prepare import prepare
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.corpora import job as corpus_job
from dragoman.text import unknown_tokens
from dragoman.text.symbols import UNK
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.text.unknown_tokens import UnknownTokens, UnknownTokenWarning, check_unknown, has_unknown_tokens

ENGLISH = [f"{word} {animal} sleeps ." for word in ("a", "the", "one", "my") for animal in ("dog", "cat", "cow", "pig")]
GERMAN = [f"{word} {animal} schläft ." for word in ("ein", "der", "mein") for animal in ("Hund", "Kater", "Ochse")]
RUSSIAN = [f"{word} {animal} спит ." for word in ("один", "мой", "твой") for animal in ("пёс", "кот", "бык", "ёж")]
KINDS = ("bpe", "subword_nmt", "wordpiece", "unigram", "word", "character", "bert")


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    printed: list[str] = []
    monkeypatch.setattr(unknown_tokens, "warn", printed.append)
    monkeypatch.setattr(corpus_job, "info", printed.append)
    return printed


def write(path: Path, targets: list[str]) -> Path:
    path.write_text("".join(f"{one}\t{two}\n" for one, two in zip(ENGLISH, targets, strict=False)), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_share_of_every_side_is_counted(tmp_path: Path, kind: str) -> None:
    subword: dict[str, object] = {"kind": kind} | ({} if kind == "unigram" else {"min_frequency": 1})
    if kind not in ("subword_nmt", "character", "word"):
        subword["size"] = 330
    text = TextConfig.model_validate({"subword": subword})
    tokenizers = train_tokenizers(text, ENGLISH, GERMAN)
    corpus = CorpusConfig(pairs=write(tmp_path / "ru.tsv", RUSSIAN))
    for _ in range(2):  # the second time, from the prepared folder
        (report,) = prepare(corpus, CleaningConfig(), tokenizers, tmp_path / "prepared", workers=1).reports
        if kind in ("bpe", "unigram"):
            assert not report.unknown
            assert "unknown tokens" not in report.table()
            assert not has_unknown_tokens(tokenizers.source)
            continue
        ids = tokenizers.target.encode_batch(RUSSIAN)
        expected = sum(each.count(UNK) for each in ids) / sum(map(len, ids))
        assert report.unknown["source"].fraction == 0
        assert report.unknown["target"].fraction == pytest.approx(expected)
        assert expected > 0.5
        assert f"0.00% of the source, {expected:.2%} of the target" in report.table()
        assert report.to_json()["unknown_tokens"]["target"] == pytest.approx(expected)
        with pytest.raises(DataError, match=rf"ru.tsv: {expected:.1%} of the .* target tokens are unknown"):
            check_unknown("ru.tsv", report.unknown, 0.25)


def test_counts_are_added() -> None:
    counts = UnknownTokens.of([[4, UNK], [], [5]]) + UnknownTokens(1, 1)
    assert counts == (2, 4)
    assert counts.fraction == 0.5
    assert UnknownTokens().fraction == 0
    check_unknown("text", {"text": counts}, None)
    check_unknown("text", {"text": counts}, 0.5)


def test_a_warning_is_printed_once_above_a_tenth(messages: list[str]) -> None:
    tokenizer = train_tokenizers(TextConfig.model_validate({"subword": {"kind": "character"}}), ENGLISH, []).source
    warning = UnknownTokenWarning(tokenizer)
    warning.note(tokenizer.encode_batch(ENGLISH))
    assert not messages
    for _ in range(3):
        warning.note(tokenizer.encode_batch(RUSSIAN * 3))
    assert len(messages) == 1
    assert "are unknown to the model's vocabulary" in messages[0]
    silent = UnknownTokenWarning(tokenizer, enabled=False)
    silent.note(tokenizer.encode_batch(RUSSIAN))
    assert len(messages) == 1


def recipe(folder: Path, name: str, **data: object) -> Path:
    content = {
        "data": {"train": {"pairs": "train.tsv"}, "valid": {"pairs": "valid.tsv"}, "batch": {"tokens": 500}, **data},
        "text": {"subword": {"kind": "character", "min_frequency": 1}},
        "model": {
            "preset": "tiny",
            "width": 16,
            "encoder": {"layers": 1, "feedforward": 16},
            "decoder": {"layers": 1, "feedforward": 16},
        },
        "train": {"max_steps": 1, "validate_every": 1, "device": "cpu", "threads": 1},
        "out": name,
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return folder / f"{name}.yaml"


def test_a_run_with_another_alphabet_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.tsv", GERMAN)
    write(tmp_path / "valid.tsv", RUSSIAN)
    with pytest.raises(DataError, match=r"validation set valid.tsv: \d\d.\d% of the \d+ target tokens are unknown"):
        train(recipe(tmp_path, "refused"))
    assert not (tmp_path / "refused" / "model.safetensors").exists()
    train(recipe(tmp_path, "allowed", max_unknown=None))
    assert any("target tokens of valid.tsv are unknown" in message for message in messages)
    write(tmp_path / "valid.tsv", GERMAN)
    messages.clear()
    Translator.load("allowed", "cpu").translate(["кот спит .", "пёс"], beam=1)
    assert sum("are unknown to the model's vocabulary" in message for message in messages) == 1
    write(tmp_path / "train.tsv", RUSSIAN)
    with pytest.raises(DataError, match=r"training corpus train.tsv: \d\d.\d% of the \d+ target tokens are unknown"):
        train(recipe(tmp_path, "tuned"), {"train.start": "allowed"})
