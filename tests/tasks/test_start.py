"""Runs that start from a trained model, with the reward objective on top, interrupted and resumed."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import tiny_config, tiny_model, tiny_tokenizers, write_tiny_model
from training_runs import RUN, SETTINGS, outcome, write_corpus

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder, model_parameters
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.start import Start
from dragoman.models.parts import parts_of
from dragoman.tasks.train import train
from dragoman.tasks.translation.config import TranslationRun

BASE = [*SETTINGS, "train.validate_every=4", "train.checkpoint_every=4", "train.log_every=1", "train.average.count=0"]
REWARD = [
    "train.start=start",
    "train.objective.kind=sequence_reward",
    "train.objective.metric=chrf",
    "train.objective.samples=3",
]


def config(*settings: str, out: str = RUN) -> TranslationRun:
    corpus = {
        f"data.{part}.{side}": f"{part}.{end}"
        for part in ("train", "valid")
        for side, end in (("source", "a"), ("target", "b"))
    }
    return load_settings(
        None, [*(f"{key}={value}" for key, value in corpus.items()), f"out={out}", *settings], TranslationRun
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a corpus and a trained model `start`."""
    folder, threads = tmp_path_factory.mktemp("trained"), torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_corpus(folder, 60)
        train(config(*BASE, "train.max_steps=4", out="start"))
    yield folder
    torch.set_num_threads(threads)


@pytest.fixture
def started(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, as the working folder."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parameters(folder: Path) -> dict[str, Any]:
    return model_parameters(load_model_folder(folder, torch.device("cpu")).model)


SHORT = [setting for setting in BASE if not setting.startswith(("model.", "text."))]


def test_model_and_text_are_taken_from_the_folder(started: Path) -> None:
    frozen = ["train.schedule.kind=inverse_sqrt", "train.schedule.peak=1e-12", "train.max_steps=4"]
    train(config(*SHORT, "train.start=start", *frozen))
    before, after = parameters(started / "start"), parameters(started / RUN)
    assert set(before) == set(after)
    for name, tensor in before.items():
        torch.testing.assert_close(tensor, after[name], rtol=0, atol=1e-9)
    tokenizers = [(started / folder / "tokenizer.json").read_bytes() for folder in ("start", RUN)]
    assert tokenizers[0] == tokenizers[1]
    stored = load_settings(started / RUN / "config.yaml", [], TranslationRun)
    assert stored.model.width == 16
    assert stored.text.subword.size == 300
    assert stored.train.start == Path("start")


def test_a_new_corpus_is_read_with_the_old_vocabulary(started: Path) -> None:
    lines = [f"a blue whale number {place} swims" for place in range(30)]
    for end in "ab":
        (started / f"train.{end}").write_text("".join(f"{line} {end}\n" for line in lines), encoding="utf-8")
    train(config(*SHORT, "train.start=start", "train.max_steps=2"))
    assert (started / RUN / "tokenizer.json").read_bytes() == (started / "start" / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("model.width=32", "model.width (32 in this run, 16 in the folder)"),
        ("text.subword.size=290", "text.subword.size (290 in this run, 300 in the folder)"),
    ],
)
def test_another_architecture_or_text_is_refused(started: Path, setting: str, named: str) -> None:
    with pytest.raises(ConfigError) as error:
        train(config(*BASE, "train.start=start", setting))
    assert named in str(error.value)
    assert not (started / RUN / "config.yaml").exists()


def test_dropout_may_differ_and_a_missing_folder_is_named(started: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        train(config(*BASE, "train.start=nowhere"))
    result = train(
        config(*BASE, "train.start=start", "model.dropout=0.4", "text.subword.dropout=0.1", "train.max_steps=1")
    )
    assert result.step == 1
    stored = load_settings(started / RUN / "config.yaml", [], TranslationRun)
    assert stored.model.dropout.residual == 0.4
    assert stored.text.subword.dropout == 0.1


def test_new_tags_get_new_rows(started: Path) -> None:
    """The old rows and ids stay; new ones start as the mean. A second run from the tagged model adds no others."""
    for part in ("train", "valid"):
        lines = [
            f"{a}\t{b}"
            for a, b in zip(*((started / f"{part}.{end}").read_text().split("\n") for end in "ab"), strict=False)
            if a
        ]
        (started / f"{part}.tsv").write_text("".join(f"{line}\n" for line in lines))
    data = ["data.valid.pairs=valid.tsv", "data.train={pairs: train.tsv, tags: [bt, law]}"]
    frozen = ["train.schedule.kind=inverse_sqrt", "train.schedule.peak=1e-12", "train.max_steps=2"]
    tagged = load_settings(None, [*data, *SHORT, *frozen, "train.start=start", f"out={RUN}"], TranslationRun)
    train(tagged)
    before, after = (load_model_folder(started / name, torch.device("cpu")) for name in ("start", RUN))
    assert after.tokenizers.tags == ("bt", "law")
    size = before.tokenizers.source.size
    assert after.tokenizers.source.tag_ids(["bt", "law"]) == [size, size + 1]
    assert after.tokenizers.source.encode_batch(["a b", "c"]) == before.tokenizers.source.encode_batch(["a b", "c"])
    old, new = parameters(started / "start"), parameters(started / RUN)
    grown = [name for name in old if old[name].shape != new[name].shape]
    assert grown
    for name, tensor in old.items():
        torch.testing.assert_close(new[name][: len(tensor)] if tensor.dim() else new[name], tensor, rtol=0, atol=1e-6)
    for name in grown:
        for row in new[name][size:]:
            torch.testing.assert_close(row, old[name].mean(0), rtol=0, atol=1e-6)
    (started / RUN).rename(started / "tagged")
    more = load_settings(None, [*data, *SHORT, *frozen, "train.start=tagged", f"out={RUN}"], TranslationRun)
    train(more)
    assert load_model_folder(started / RUN, torch.device("cpu")).tokenizers.tags == ("bt", "law")


def test_a_frozen_table_takes_no_new_tags() -> None:
    """All their rows would remain the same mean, so the model could not distinguish them."""
    tokenizers = tiny_tokenizers()
    start = Start(Path("start"), LoadedModel(tiny_model(tiny_config(), tokenizers), tokenizers, Meta(step=1), {}))
    tagged = tokenizers.with_tags(["bt"])
    model = tiny_model(tiny_config(), tagged, seed=2)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("embedding" not in name)
    with pytest.raises(ConfigError, match=r"new tags need trainable embeddings, but .* is frozen"):
        start.fill(model, tagged, {})


@pytest.mark.slow
def test_reward_runs_resume_bit_by_bit(started: Path) -> None:
    """With scheduled sampling, sampled translations and a start, a resumed run equals an uninterrupted one."""
    changing = ["train.teacher_forcing.kind=exponential", "train.teacher_forcing.base=0.9"]
    train(config(*SHORT, *REWARD, *changing, "train.max_steps=8"))
    whole = outcome(started)
    (started / RUN).rename(started / "whole")
    train(config(*SHORT, *REWARD, *changing, "train.max_steps=4"))
    train(config(*SHORT, *REWARD, *changing, "train.max_steps=8"), resume=True)
    again = outcome(started)
    assert whole["model.safetensors"] == again["model.safetensors"]
    losses = [[line["loss"] for line in each["log"] if "loss" in line] for each in (whole, again)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 8


@pytest.mark.parametrize("gradient", ["straight_through", "reinforce"])
def test_hard_attention_starts_from_all_parts_of_a_model_with_soft_attention(tmp_path: Path, gradient: str) -> None:
    """Only the baselines of REINFORCE are new."""
    tokenizers = tiny_tokenizers()
    soft = write_tiny_model(tmp_path / "soft")
    stack = {"layers": 1, "heads": 2, "feedforward": 16, "cross_attention": {"kind": "hard", "gradient": gradient}}
    hard = tiny_model(tiny_config(decoder=stack), tokenizers, seed=2)
    transfer = Start.load(tmp_path / "soft", tuple(parts_of(soft))).fill(hard, tokenizers, {})
    assert set(transfer.copied) == set(parts_of(soft))
    before, after = model_parameters(soft), model_parameters(hard)
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    new = {name.rpartition(".")[0].rpartition(".")[2] for name in after.keys() - before.keys()}
    assert new == ({"baseline"} if gradient == "reinforce" else set())
