"""Several seeds by one setting: separate runs, mean and standard deviation, resuming."""

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch
from cards import pictures, rows, text

from dragoman import Predictor, train
from dragoman.base.errors import ConfigError
from dragoman.checkpoint.tensors import load_tensors
from dragoman.tasks.seeds import SeedResults


def recipe(folder: Path, **settings: Any) -> dict[str, Any]:
    rows = [f"the man {verb} a dog\t{label}" for verb, label in (("sees", "yes"), ("hears", "no"))] * 8
    (folder / "data.tsv").write_text("\n".join(rows) + "\n")
    machine = {"device": "cpu", "precision": "float32", "threads": 1}
    return {
        "task": {"kind": "classification"},
        "data": {"train": str(folder / "data.tsv"), "valid": str(folder / "data.tsv")},
        "model": {"preset": None, "width": 4, "encoder": {"kind": "mean"}},
        "train": {"max_steps": 2, "seed": 5, **machine},
        "out": str(folder / "runs"),
        **settings,
    }


def test_each_seed_has_its_own_run_and_the_scores_are_summarised(tmp_path: Path) -> None:
    result = train(recipe(tmp_path, seeds=3), quiet=True)
    assert isinstance(result, SeedResults) and list(result.seeds) == [5, 6, 7]
    losses = [each.validation["loss"].value for each in result.seeds.values()]
    assert len(set(losses)) == 3
    summary = json.loads((tmp_path / "runs" / "seeds.json").read_text())
    assert summary["seeds"] == [5, 6, 7]
    assert summary["scores"]["loss"] == {
        "mean": pytest.approx(fmean(losses)),
        "sd": pytest.approx(stdev(losses)),
        "values": losses,
    }
    assert f"loss = {fmean(losses):.4f} ± {stdev(losses):.4f}" in str(result)
    assert f"loss = {fmean(losses):.4f} ± {stdev(losses):.4f}" in text(result)
    accuracies = [each.validation["accuracy"].value for each in result.seeds.values()]
    assert result.validation["accuracy"].value == max(accuracies)
    assert Predictor.load(result.folder, "cpu").labels == ("no", "yes")
    single = train(recipe(tmp_path, out=str(tmp_path / "alone")), {"train.seed": 6}, quiet=True)
    (curves,) = pictures(single)
    assert curves.get("alt") == single.curves().caption and "accuracy" in {row[0] for row in rows(single)}
    ours, alone = (load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("runs/seed-6", "alone"))
    assert all(torch.equal(ours[name], alone[name]) for name in alone)


def test_interrupted_seeds_resume(tmp_path: Path) -> None:
    whole = train(recipe(tmp_path, seeds=2), quiet=True)
    with pytest.raises(ConfigError, match="already contains a training run"):
        train(recipe(tmp_path, seeds=2), quiet=True)
    again = train(recipe(tmp_path, seeds=3), resume=True, quiet=True)
    assert isinstance(whole, SeedResults) and isinstance(again, SeedResults)
    assert list(again.seeds) == [5, 6, 7]
    assert [again.seeds[seed].step for seed in (5, 6, 7)] == [2, 2, 2]
    assert again.seeds[5].validation["loss"].value == whole.seeds[5].validation["loss"].value
    resumed = train(tmp_path / "runs", resume=True, quiet=True)
    assert isinstance(resumed, SeedResults) and list(resumed.seeds) == [5, 6, 7]


def test_a_model_whose_size_the_run_chooses_is_resumed_from_the_folder(tmp_path: Path) -> None:
    train(recipe(tmp_path, seeds=2, model={"width": 8}), {"train.max_steps": 1}, quiet=True)
    again = train(tmp_path / "runs", resume=True, quiet=True)
    assert isinstance(again, SeedResults) and [each.step for each in again.seeds.values()] == [1, 1]


def test_several_processes_do_not_share_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="without torchrun"):
        train(recipe(tmp_path, seeds=2), quiet=True)
