"""Denoising: training, validation, evaluation, model folders, and the tasks that start from the result."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from t5_folders import GAPS, write_t5
from tiny_model import write_tiny_model

from dragoman import LanguageModel, Predictor, Translator, describe, evaluate_denoising, train
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.checkpoint.tensors import load_tensors
from dragoman.cli.main import main
from dragoman.data.batches.masking import MASK
from dragoman.data.noise.noise import Corruption
from dragoman.data.noise.spans import SpanCorruptionConfig
from dragoman.exchange.formats import export, import_model
from dragoman.tasks.denoising.config import DenoisingRun
from dragoman.tasks.registry import open_job

STACK: dict[str, Any] = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
MODEL: dict[str, Any] = {"preset": "tiny", "width": 8, "encoder": STACK, "decoder": STACK}
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1, "average": {"count": 0}}
STILL = {"max_steps": 1, "schedule": {"kind": "constant", "peak": 1e-30}, **MACHINE}
LINES = ["a dog runs in the park .", "the man sees a red house .", "two cats sleep under a tree ."] * 4
BART = {"kind": "combination", "noises": [{"kind": "sentence_permutation"}, {"kind": "infilling"}]}


def recipe(folder: Path, **changes: Any) -> dict[str, Any]:
    (folder / "text.txt").write_text("\n".join(f"{line} {number}" for number, line in enumerate(LINES)) + "\n")
    text = {"text": str(folder / "text.txt")}
    return {
        "task": {"kind": "denoising"},
        "data": {"train": text, "valid": text, "block": 24, "noise": BART, **changes.pop("data", {})},
        "text": {"subword": {"kind": "bpe", "size": 300}},
        "model": {**MODEL, **changes.pop("model", {})},
        "train": {"max_steps": 2, **MACHINE, **changes.pop("train", {})},
        "out": str(folder / "body"),
        **changes,
    }


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("denoising")
    train(recipe(folder), quiet=True)
    return folder / "body"


def assert_equal_parameters(one: Path, other: Path, expected_new: set[str]) -> None:
    ours, theirs = (load_tensors(folder / "model.safetensors")[0] for folder in (one, other))
    assert ours.keys() - theirs.keys() == expected_new
    for name in ours.keys() & theirs.keys():
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=1e-20)


def test_translation_continues_with_all_parameters_and_the_vocabulary(body: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line[::-1]}\n" for line in LINES))
    pairs = {"pairs": str(tmp_path / "pairs.tsv")}
    settings = {"data": {"train": pairs, "valid": pairs}, "train": {"start": str(body), "ema": None, **STILL}}
    train({**settings, "out": str(tmp_path / "run")}, quiet=True)
    assert_equal_parameters(tmp_path / "run", body, set())
    assert Translator.load(tmp_path / "run", "cpu").tokenizers.tags == (MASK,)


def test_a_language_model_starts_with_the_decoder(
    body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = {"text": str(body.parent / "text.txt")}
    model = {"preset": None, "width": 8, "decoder": {**STACK, "norm": "pre"}, "positions": {"kind": "rotary"}}
    settings = {
        "task": {"kind": "language_model"},
        "data": {"train": text, "valid": text},
        "model": model,
        "train": {"start": str(body), **STILL},
        "out": str(tmp_path / "run"),
    }
    train(settings)
    report = " ".join(capsys.readouterr().err.split())
    assert "decoder.embedding" in report and "New:" not in report
    assert_equal_parameters(tmp_path / "run", body, {"decoder.embedding.tokens.weight"})  # stored under another name
    assert LanguageModel.load(tmp_path / "run", "cpu").tokenizer.tags == (MASK,)


def test_a_classifier_starts_with_the_encoder(body: Path, tmp_path: Path) -> None:
    rows = [f"the man {verb} a dog\t{label}" for verb, label in (("sees", "yes"), ("hears", "no"))] * 8
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    data = {name: str(tmp_path / "data.tsv") for name in ("train", "valid")}
    settings = {
        "task": {"kind": "classification"},
        "data": data,
        "train": {"start": str(body), **STILL},
        "out": str(tmp_path / "run"),
    }
    train({**settings, "model": {}}, quiet=True)
    assert_equal_parameters(tmp_path / "run", body, {"head.output.weight", "head.output.bias"})
    assert Predictor.load(tmp_path / "run", "cpu").tokenizer.tags == (MASK,)


def test_denoising_continues_with_another_noise_and_its_new_symbols(body: Path, tmp_path: Path) -> None:
    changes = {"data": {"noise": {"kind": "span_corruption"}}, "train": {"start": str(body), **STILL}}
    settings = recipe(tmp_path, **changes, out=str(tmp_path / "run"))
    train({name: value for name, value in settings.items() if name not in ("model", "text")}, quiet=True)
    tokenizer = Translator.load(tmp_path / "run", "cpu").tokenizers.source
    assert tokenizer.tags == (MASK, "extra_id_0", "extra_id_1", "extra_id_2")
    ours, theirs = (load_tensors(folder / "model.safetensors")[0] for folder in (tmp_path / "run", body))
    name = next(name for name in ours if name.endswith("tokens.weight"))
    torch.testing.assert_close(ours[name][:-3], theirs[name], rtol=0, atol=1e-20)


@pytest.mark.slow
def test_denoising_continues_an_imported_t5_with_the_sentinels_of_its_vocabulary(tmp_path: Path) -> None:
    write_t5(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "t5", quiet=True)
    texts = {"text": str(tmp_path / "text.txt")}
    (tmp_path / "text.txt").write_text("".join(f"the sea and a day <extra_id_1> {line}\n" for line in LINES))
    settings = {
        "task": {"kind": "denoising"},
        "data": {"train": texts, "valid": texts, "block": 64},
        "train": {"start": str(tmp_path / "t5"), **STILL},
        "out": str(tmp_path / "run"),
    }
    job = open_job(DenoisingRun.model_validate(settings))
    job.prepare()
    tokenizer = job.tokenizers.source  # type: ignore[union-attr]
    assert tokenizer.tags == ()
    sentinels = [tokenizer.marks[f"extra_id_{number}"] for number in range(GAPS)]
    assert [tokenizer.symbols[each] for each in sentinels] == [f"<extra_id_{number}>" for number in range(GAPS)]
    corruption = Corruption(SpanCorruptionConfig(rate=0.3), tokenizer, 1)
    ids = np.array(tokenizer.encode(" ".join(["the sea and a day", *LINES])))
    source, target = corruption.corrupt(ids)
    used = [each for each in source if each in sentinels]
    assert used == sentinels[: len(used)] and len(used) >= 2
    assert [each for each in target if each in sentinels] == sentinels[: len(used) + 1]
    assert sorted([*source, *target]) == sorted([*ids, *used, *used, sentinels[len(used)]])
    train(settings, quiet=True)
    assert_equal_parameters(tmp_path / "run", tmp_path / "t5", set())
    export(tmp_path / "run", tmp_path / "out", "huggingface", quiet=True)
    longer = {**settings, "data": {**settings["data"], "block": 300}}  # type: ignore[dict-item]
    tags = open_job(DenoisingRun.model_validate(longer))._tokenizers.source.tags  # type: ignore[attr-defined]
    assert tags == tuple(f"extra_id_{number}" for number in range(GAPS, 16))


def test_evaluate_repeats_the_validation(body: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = body.parent / "text.txt"
    log = [json.loads(line) for line in (body / "log.jsonl").read_text().splitlines()]
    loss = next(line["valid_loss"] for line in reversed(log) if "valid_loss" in line)
    score = evaluate_denoising(body, text, device="cpu")
    assert score.loss == pytest.approx(loss, rel=1e-5)
    assert score.noise == "sentence permutation, then infilling (rate 0.3, mean span 3.0)"
    arguments = ["evaluate", "perplexity", str(body), "--text", str(text), "--device", "cpu"]
    assert main(arguments) == 0
    assert f"perplexity per target token {score.perplexity:.3f}" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"][0]["loss"] == score.loss
    assert main([*arguments, "--beam", "3"]) == 2
    assert "--beam" in capsys.readouterr().err


def test_a_text_without_documents_is_not_evaluated(body: Path) -> None:
    with pytest.raises(DataError, match="the text contains no documents"):
        evaluate_denoising(body, [])


def test_the_folder_is_described_as_a_denoising_model(body: Path) -> None:
    card = (body / "README.md").read_text()
    assert "\n# Denoising encoder–decoder\n" in card
    assert "| Noise | sentence permutation, then infilling (rate 0.3, mean span 3.0) |" in card
    assert "perplexity of the targets" in card
    assert "a denoising encoder–decoder" in str(describe(body))


def test_a_translation_model_is_not_evaluated_on_restored_text(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    with pytest.raises(ModelError, match=r"was not trained to restore text"):
        evaluate_denoising(tmp_path / "model", ["a dog"])
    with pytest.raises(ModelError, match="is not a model folder"):
        evaluate_denoising(tmp_path, ["a dog"])


def test_a_model_with_two_vocabularies_cannot_restore_text(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line[::-1]}\n" for line in LINES))
    pairs = {"pairs": str(tmp_path / "pairs.tsv")}
    text = {"shared": False, "subword": {"kind": "bpe", "size": 300}}
    translation = {"data": {"train": pairs, "valid": pairs}, "text": text, "model": MODEL, "train": STILL}
    train({**translation, "out": str(tmp_path / "translator")}, quiet=True)
    settings = recipe(tmp_path, train={"start": str(tmp_path / "translator")})
    settings = {name: value for name, value in settings.items() if name not in ("model", "text")}
    with pytest.raises(ConfigError, match="with one vocabulary, but the model of train.start has two"):
        train(settings, quiet=True)


def test_a_text_may_not_exceed_the_positions_of_the_model(tmp_path: Path) -> None:
    settings = recipe(tmp_path, model={"positions": {"kind": "learned", "limit": 16}})
    with pytest.raises(ConfigError, match=r"data\.block is 24 tokens, but the model has 16 positions"):
        train(settings, quiet=True)
