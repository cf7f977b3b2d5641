"""`text.source_prefix`: words that precede every source text, in training, in translation and in imported models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from t5_folders import write_t5

from dragoman import Translator, train
from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.tensors import load_tensors
from dragoman.cli.main import main
from dragoman.exchange.formats import export, import_model
from dragoman.tasks.denoising.config import DenoisingRun
from dragoman.tasks.registry import open_job
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.symbols import InlineText
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

KINDS = ("bpe", "gpt2", "subword_nmt", "wordpiece", "sentencepiece", "unigram", "word", "character")
SIZES = {"bpe": 300, "gpt2": 300, "wordpiece": 100, "sentencepiece": 60, "unigram": 290, "word": 100}
LINES = ["translate to German: a dog runs .", "the man sees a red house .", "zwei Hunde schlafen ."] * 4
PREFIX = "translate to German:"
STACK: dict[str, Any] = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1, "average": {"count": 0}}


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizers]:
    def learn(kind: str) -> Tokenizers:
        size = {"size": SIZES[kind]} if kind in SIZES else {}
        text = TextConfig.model_validate({"subword": {"kind": kind, **size}, "source_prefix": f" {PREFIX} "})
        return train_tokenizers(text, LINES, LINES)

    return {kind: learn(kind) for kind in KINDS}


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder."""
    folder = tmp_path_factory.mktemp("t5") / "theirs"
    write_t5(folder, seed=3)
    return folder


@settings(max_examples=40)
@given(kind=st.sampled_from(KINDS), text=st.lists(st.sampled_from(["dog", "Hunde", ".", "ü", "x"]), min_size=1))
def test_a_source_is_encoded_as_the_text_after_the_prefix(
    learned: dict[str, Tokenizers], kind: str, text: list[str]
) -> None:
    source, target = learned[kind].source, learned[kind].target
    line = " ".join(text)
    ids, plain, lead = source.encode(line), target.encode(f"{PREFIX} {line}"), len(target.encode(PREFIX))
    assert ids == plain
    assert ids[:lead] == target.encode(PREFIX)
    assert source.encode_inlined([InlineText((line,))]) == [ids]
    (indices, words), (_, own_words) = source.words(line), target.words(line)
    assert len(indices) == len(source.spans(line)) == len(ids)
    assert not any(words[index] for index in indices[:lead])
    assert "".join(words).strip() == "".join(own_words).strip() == line
    covered, own_covered = ({place for span in each.spans(line) for place in range(*span)} for each in (source, target))
    assert covered == own_covered and len(covered) >= len("".join(text))
    assert source.spans(line)[:lead] == [(0, 0)] * lead


def test_the_files_of_a_tokenizer_contain_the_prefix_of_the_source(
    learned: dict[str, Tokenizers], tmp_path: Path
) -> None:
    for kind, tokenizers in learned.items():
        folder = tmp_path / kind
        folder.mkdir()
        tokenizers.save(folder)
        loaded = Tokenizers.load(folder)
        assert loaded.has_single_tokenizer and loaded.shared
        for each in (tokenizers, loaded, loaded.with_tags(["bt"]), loaded.with_dropout(0.0)):
            assert (each.source.prefix, each.target.prefix) == (PREFIX, "")
            assert each.has_single_tokenizer
        assert loaded.fingerprint == tokenizers.fingerprint
        assert loaded.fingerprint != tokenizers.with_source_prefix("translate to French:").fingerprint
        assert loaded.with_source_prefix("").source.encode("dog") == loaded.target.encode("dog")


def test_a_model_is_trained_and_translates_with_its_prefix(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("the man sees a red house .\tzwei Hunde schlafen .\n" * 8)
    recipe = {
        "data": {name: {"pairs": str(tmp_path / "pairs.tsv")} for name in ("train", "valid")},
        "text": {"subword": {"kind": "bpe", "size": 300}, "source_prefix": PREFIX},
        "model": {"preset": "tiny", "width": 8, "encoder": STACK, "decoder": STACK},
        "train": {"max_steps": 2, **MACHINE},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    translator = Translator.load(tmp_path / "run", "cpu", "torch")
    line, plain = "the man sees a dog .", translator.tokenizers.target
    (row,) = translator.codec.encode_rows([(line, translator.request())], [1])
    assert list(row.source) == plain.encode(f"{PREFIX} {line}")
    job: Any = open_job(load_settings(recipe, [], TranslationRun))
    job.prepare()
    sources, targets = job.prepared.dataset.take(np.array([0]))[:2]
    assert sources.ids.tolist() == plain.encode(f"{PREFIX} the man sees a red house .")
    assert targets.ids.tolist() == plain.encode("zwei Hunde schlafen .")


def test_an_imported_t5_translates_raw_sentences_with_its_prefix(t5: Path, tmp_path: Path) -> None:
    raw, prefixed = tmp_path / "raw", tmp_path / "prefixed"
    assert main(["import", str(t5), "--out", str(raw), "--quiet"]) == 0
    prefix = ["--source-prefix", "the sea and "]
    assert main(["import", str(t5), "--out", str(prefixed), "--quiet", *prefix]) == 0
    texts = ["a day", "every stone. a day!", ""]
    expected = Translator.load(raw, "cpu").translate([f"the sea and {text}" for text in texts[:2]])
    translator = Translator.load(prefixed, "cpu")
    assert translator.translate(texts) == [*expected, ""]
    assert expected != Translator.load(raw, "cpu").translate(texts[:2])
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(t5)
    theirs = tokenizer(f"the sea and {texts[1]}", add_special_tokens=False)["input_ids"]
    assert len(translator.tokenizers.source.encode(texts[1])) == len(theirs)
    export(prefixed, tmp_path / "out", "t5", quiet=True)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["prefix"] == "the sea and "
    import_model(tmp_path / "out", tmp_path / "again", quiet=True)
    for name in ("config.yaml", "tokenizer.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (prefixed / name).read_bytes(), name


def test_the_prefixes_in_a_folder_are_listed(
    t5: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr("dragoman.exchange.huggingface.model_folder.info", messages.append)
    config = json.loads((t5 / "config.json").read_text())
    tasks = {"de": {"prefix": "translate English to German: "}, "sum": {"prefix": "summarize: ", "max_length": 200}}
    folder = tmp_path / "theirs"
    folder.mkdir()
    for path in t5.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps({**config, "task_specific_params": tasks}))
    import_model(folder, tmp_path / "one")
    assert "'translate English to German:', 'summarize:'" in messages[0] and "--source-prefix" in messages[0]
    import_model(folder, tmp_path / "two", source_prefix="summarize:")
    assert len(messages) == 1
    (folder / "config.json").write_text(json.dumps({**config, "prefix": "the sea "}))
    import_model(folder, tmp_path / "three")
    assert Tokenizers.load(tmp_path / "three").source.prefix == "the sea"
    import_model(folder, tmp_path / "four", source_prefix="")
    assert Tokenizers.load(tmp_path / "four").source.prefix == ""


def continued(t5: Path, folder: Path, **sections: Any) -> dict[str, Any]:
    (folder / "pairs.tsv").write_text("the sea\ta day\nevery stone\tthe sea\n" * 4)
    return {
        "data": {name: {"pairs": str(folder / "pairs.tsv")} for name in ("train", "valid")},
        "train": {"start": str(t5), "max_steps": 1, "schedule": {"kind": "constant", "peak": 0.01}, **MACHINE},
        "out": str(folder / "run"),
        **sections,
    }


@pytest.mark.parametrize(
    ("sections", "prefix"),
    [
        pytest.param({}, "the sea", marks=pytest.mark.slow),
        ({"text": {"subword": {"kind": "t5"}, "source_prefix": "every stone"}}, "every stone"),
    ],
)
def test_further_training_keeps_or_changes_the_prefix(
    t5: Path, tmp_path: Path, sections: dict[str, Any], prefix: str
) -> None:
    import_model(t5, tmp_path / "ours", source_prefix="the sea", quiet=True)
    sections = {name: {"normalization": "nfc", **section} for name, section in sections.items()}
    train(continued(tmp_path / "ours", tmp_path, **sections), quiet=True)
    assert Tokenizers.load(tmp_path / "run").source.prefix == prefix
    before, after = (load_tensors(tmp_path / each / "model.safetensors")[0] for each in ("ours", "run"))
    assert before.keys() == after.keys() and not all(torch.equal(before[name], after[name]) for name in before)


def test_tasks_without_a_source_text_have_no_prefix(t5: Path, tmp_path: Path) -> None:
    import_model(t5, tmp_path / "ours", source_prefix="the sea", quiet=True)
    (tmp_path / "text.txt").write_text("the sea and a day\n" * 30)
    text = {"text": str(tmp_path / "text.txt")}
    run: dict[str, Any] = {
        "task": {"kind": "denoising"},
        "data": {"train": text, "valid": text, "block": 16, "noise": {"kind": "span_corruption"}},
        "train": {"start": str(tmp_path / "ours"), **MACHINE},
        "out": str(tmp_path / "body"),
    }
    job: Any = open_job(load_settings(run, [], DenoisingRun))
    job.prepare()
    assert job.run.text.source_prefix == "" and job.tokenizers.source.prefix == ""


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"task": {"kind": "classification"}}, "remove text.source_prefix"),
        ({"task": {"kind": "language_model"}}, "remove text.source_prefix"),
        ({"task": {"kind": "statistical_translation"}}, "text.source_prefix"),
    ],
)
def test_a_prefix_is_rejected_where_it_would_have_no_effect(
    tmp_path: Path, recipe: dict[str, Any], message: str
) -> None:
    (tmp_path / "train.tsv").write_text("a dog runs in the park\tgood\na cat sleeps\tbad\n" * 4)
    key = {"classification": "path", "language_model": "text"}.get(recipe["task"]["kind"], "pairs")
    data = {name: {key: str(tmp_path / "train.tsv")} for name in ("train", "valid")}
    run: Callable[[], Any] = lambda: train(  # noqa: E731
        {**recipe, "data": data, "text": {"source_prefix": PREFIX}, "out": str(tmp_path / "run")}, quiet=True
    )
    with pytest.raises(ConfigError, match=message):
        run()


def test_the_option_of_an_import_is_rejected_for_other_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpt2_folders import write_gpt2

    write_gpt2(tmp_path / "gpt2")
    with pytest.raises(ConfigError, match="--source-prefix is for use with a model that has an encoder|source-prefix"):
        import_model(tmp_path / "gpt2", tmp_path / "ours", source_prefix="the sea", quiet=True)
    assert not (tmp_path / "ours").exists()
