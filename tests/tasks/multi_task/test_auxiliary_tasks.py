"""Several tasks in one run: the batches of an update, its gradient, and the results of a run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engines import build_engine
from pydantic import ValidationError
from tiny_model import tiny_batch, tiny_config, tiny_model, tiny_tokenizers
from training_runs import BESIDE, RUN, SETTINGS, Server, differences, outcome, wait_until_reached, write_corpus

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import load_settings
from dragoman.cli.main import main
from dragoman.data.batches.batch import collate_text
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.held_out.config import HeldOutConfig
from dragoman.data.held_out.documents import HeldOutDocuments
from dragoman.tasks.multi_task.members import MultiTaskObjective, TaskBatch, TaskMember
from dragoman.tasks.multi_task.plan import MixedBatches, TaskBatches
from dragoman.tasks.multi_task.translation import DecoderLanguageModel, temperature_weights
from dragoman.tasks.registry import open_job
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.update import Update


def plan(first: int, *sizes: int) -> BatchPlan:
    """A plan of batches with `rows` rows, numbered from `first` on."""
    ends = first + np.cumsum(sizes)
    return BatchPlan([np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)], (0.0,))


def test_every_round_has_a_batch_of_each_task_and_the_first_is_read_once() -> None:
    first, epochs = plan(0, 2, 3, 1, 2, 2), [plan(0, 4, 1), plan(0, 2, 3), plan(0, 5)]
    mixed = MixedBatches([[first], epochs], [0, 10], np.tile([0, 1], 5))
    assert len(mixed) == 10
    assert [batch.tolist() for batch in mixed[::2]] == [batch.tolist() for batch in first.batches]
    others = [batch + 10 for each in epochs for batch in each.batches]
    assert [batch.tolist() for batch in mixed[1::2]] == [batch.tolist() for batch in others]
    own = TaskBatches(mixed, np.arange(3, 10, 2), 10)
    assert [batch.tolist() for batch in own] == [(batch - 10).tolist() for batch in others[1:]]
    assert mixed[-1].tolist() == mixed[9].tolist()
    with pytest.raises(IndexError):
        mixed[10]


def test_an_update_moves_by_the_weighted_sum_of_the_tasks_mean_losses(tmp_path: Path) -> None:
    model = tiny_model(tiny_config(dropout=0.0), tiny_tokenizers())
    texts = collate_text([[1, 9, 8, 7, 2], [1, 5, 2]], [0, 1])
    pairs, plain, weight = tiny_batch(5), CrossEntropy(), 0.3
    members = {
        "translation": TaskMember("translation", None, 1.0, lambda model: model),  # type: ignore[arg-type]
        "text": TaskMember("text", None, weight, DecoderLanguageModel.from_translator),  # type: ignore[arg-type]
    }
    mixed = MultiTaskObjective(members, dict.fromkeys(members, plain))
    model.train()
    means = [
        plain(model, pairs).total / pairs.target_tokens,
        plain(DecoderLanguageModel.from_translator(model), texts).total / texts.target_tokens,
    ]
    expected = torch.autograd.grad(means[0] + weight * means[1], list(model.parameters()), allow_unused=True)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    engine = build_engine(model, mixed, torch.optim.SGD(model.parameters(), lr=0.0), Journal(tmp_path / "journal"))
    # one task has several batches, which must count as one
    batches = [*(TaskBatch("translation", part) for part in pairs.split(2)), TaskBatch("text", texts)]
    result = engine.step(Update(batches), TrainingPoint(1), 1.0)
    for old, parameter, gradient in zip(before, model.parameters(), expected, strict=True):
        torch.testing.assert_close(old - parameter.detach(), gradient, rtol=1e-3, atol=1e-6)
    assert result.loss == pytest.approx(float(means[0] + weight * means[1]), rel=1e-5)
    assert result.losses.keys() == members.keys()
    assert result.cross_entropy == pytest.approx(sum(result.losses.values()))
    assert result.target_tokens == pairs.target_tokens + texts.target_tokens


def test_a_temperature_sets_weights_by_tokens() -> None:
    assert temperature_weights([100, 400, 25], 2) == pytest.approx([1, 2, 0.5])


@pytest.mark.parametrize(
    ("ranks", "precision"), [(1, "bfloat16"), pytest.param(2, "float32", marks=pytest.mark.slow)], ids=["1", "2"]
)
def test_a_killed_mixture_is_resumed_bit_for_bit(server: Server, tmp_path: Path, ranks: int, precision: str) -> None:
    """In bfloat16, the batches of both tasks are packed. This choice is stored with the run."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        arguments = ["train", *write_corpus(folder, 60), *SETTINGS, *BESIDE, "train.max_steps=24"]
        arguments.append(f"train.precision={precision}")
    assert [process.wait() for process in server.start_ranks(ranks, whole, *arguments)] == [0] * ranks
    processes = server.start_ranks(ranks, killed, *arguments)
    wait_until_reached(processes[0], 10)
    for process in processes:
        process.kill()
        process.wait()
    resumed = server.start_ranks(ranks, killed, *arguments, "--resume")
    assert [process.wait() for process in resumed] == [0] * ranks
    stored = load_settings(killed / RUN / "config.yaml", [], TranslationRun)
    assert stored.auxiliary_tasks is not None
    for batches in (stored.data.batch, stored.auxiliary_tasks.tasks["reversed"].data.batch):
        assert batches.packed is (precision == "bfloat16")
    expected: dict[str, Any] = outcome(whole)
    assert differences(expected, outcome(killed)) == []
    judged = [line for line in expected["log"] if "valid_bleu" in line]
    assert all({"valid_reversed_loss", "valid_reversed_perplexity"} <= line.keys() for line in judged)
    trained = [line for line in expected["log"] if "losses" in line]
    assert trained[-1]["losses"].keys() == {"translation", "reversed"}
    assert trained[-1]["losses"]["reversed"] < trained[0]["losses"]["reversed"]
    meta = json.loads((whole / RUN / "meta.json").read_text())
    assert "train.b" in meta["data"]


def test_text_beside_pairs_is_held_out_and_leaves_out_the_targets_of_held_out_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path, 100)  # the text is the target side of the pairs
    beside = [each for each in BESIDE if "valid" not in each]
    arguments = ["--source", "train.a", "--target", "train.b", "--out", RUN, *SETTINGS, *beside, "train.max_steps=2"]
    assert main(["train", *arguments, "systems=[]", "--quiet"]) == 0
    sets = tmp_path / RUN / "held_out"
    targets = [line for part in ("valid", "test") for line in (sets / f"{part}.target").read_text().splitlines()]
    documents = HeldOutDocuments.load(sets / "reversed")
    assert documents is not None
    assert documents.sizes == (8, 8)  # 10% of the 80 lines that are left
    held_out = {*targets, *documents.valid, *documents.test}
    assert len(held_out) == 20 + 16
    stored = load_settings(tmp_path / RUN / "config.yaml", [], TranslationRun)
    assert stored.auxiliary_tasks is not None
    job = open_job(stored)
    job.prepare()
    translation, auxiliary = (member.job for member in job._members)  # type: ignore[attr-defined]
    assert (translation.examples, auxiliary.prepared.reports[0].kept) == (80, 100 - len(held_out))
    assert stored.auxiliary_tasks.tasks["reversed"].data.held_out == HeldOutConfig(valid=8, test=8)
    assert main(["train", "--resume", "--out", RUN, "train.max_steps=3", "--quiet"]) == 0
    assert HeldOutDocuments.load(sets / "reversed") == documents


def test_the_flops_are_those_of_the_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset of a language model as large as the text of an auxiliary task is not the model that is trained."""
    monkeypatch.chdir(tmp_path)
    corpus = ["data={train: {source: train.a, target: train.b}, valid: {source: valid.a, target: valid.b}}"]
    write_corpus(tmp_path)
    job = open_job(load_settings(None, [*corpus, f"out={RUN}", *SETTINGS, *BESIDE], TranslationRun))
    try:
        job.prepare()
        translation, auxiliary = (member.job for member in job._members)  # type: ignore[attr-defined]
        plans = [member.plan(0) for member in (translation, auxiliary)]
        counts = []
        for member, planned in zip((translation, auxiliary), plans, strict=True):
            counted = sum(batch.target_tokens for batch in member.batches(planned, 0, 0, False))
            assert member.target_token_count() == pytest.approx(counted, rel=0.05)
            counts.append(counted / len(planned))
        width, layers, network, vocabulary = 16, 1, 32, translation.tokenizers.target.size
        weights = layers * (4 * width**2 + 2 * width * network) + width * vocabulary
        # forward and backward, with attention scores for at most 9 tokens
        assert auxiliary.flops_per_target_token() == pytest.approx(6 * weights, rel=0.2)
        each = [translation.flops_per_target_token(), auxiliary.flops_per_target_token()]
        mean = sum(flops * count for flops, count in zip(each, counts, strict=True)) / sum(counts)
        assert job.flops_per_target_token() == pytest.approx(mean, rel=0.05)
    finally:
        job.close()


def test_incompatible_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path, 20)
    corpus = ["data={train: {source: train.a, target: train.b}, valid: {source: valid.a, target: valid.b}}", "out=run"]
    with pytest.raises(ConfigError, match="remove the weight of reversed"):
        load_settings(None, [*corpus, *BESIDE, "auxiliary_tasks.temperature=5"], TranslationRun)
    wrong = [*corpus, *BESIDE, "auxiliary_tasks.tasks.reversed.data.train.text=nowhere"]
    run = load_settings(None, wrong, TranslationRun)
    with pytest.raises(DataError, match="nowhere"):
        open_job(run)


def test_several_tasks_are_not_sharded() -> None:
    corpus = {"source": "a", "target": "b"}
    settings = {
        "data": {"train": corpus, "valid": {"source": "c", "target": "d"}},
        "auxiliary_tasks": {"tasks": {"more": {"data": {"train": {"text": "e"}, "valid": {"text": "f"}}}}},
        "train": {"parallel": "fsdp"},
        "out": "run",
    }
    with pytest.raises(ValidationError, match="use train.parallel=ddp"):
        TranslationRun.model_validate(settings)
