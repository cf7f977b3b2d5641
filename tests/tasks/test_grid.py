"""A grid trains every combination of values, prepares the corpus once, resumes, and is compared as systems."""

from pathlib import Path
from typing import Any

import pytest
from cards import rows
from hypothesis import given
from hypothesis import strategies as st

from dragoman import train
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main
from dragoman.evaluation.systems import find_systems
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.tasks.grid import GridResults, grid_points, short_names


def recipe(folder: Path, **settings: Any) -> dict[str, Any]:
    rows = [f"the man {verb} a dog\t{label}" for verb, label in (("sees", "yes"), ("hears", "no"))] * 8
    (folder / "data.tsv").write_text("\n".join(rows) + "\n")
    return {
        "task": {"kind": "classification"},
        "data": {"train": str(folder / "data.tsv"), "valid": str(folder / "data.tsv")},
        "model": {"preset": None, "width": 4, "encoder": {"kind": "mean"}},
        "train": {"max_steps": 2, "device": "cpu", "precision": "float32", "threads": 1},
        "out": str(folder / "runs"),
        **settings,
    }


def test_every_combination_has_its_own_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = {"train.schedule.peak": [0.001, 0.1], "model.width": [4, 8]}
    result = train(recipe(tmp_path, grid=grid, seeds=2))
    assert isinstance(result, GridResults)
    assert list(result.runs) == [f"peak-{rate}_width-{width}" for rate in (0.001, 0.1) for width in (4, 8)]
    lines = str(result).splitlines()
    assert lines[1].split()[:2] == ["peak", "width"] and lines[2].split()[:2] == ["0.001", "4"]
    assert "±" in lines[2] and lines[-1] == f"{result.folder}: the best of them"
    parts = [part.splitlines() for part in "\n".join(lines[1:-1]).split("\n\n")]
    assert len(parts) > 1, "wider than a terminal"
    for part in parts:  # the settings are repeated
        assert [row[:2] for row in rows(result)] == [line.split()[:2] for line in part]
    scores = [each.validation["accuracy"].value for each in result.runs.values()]
    assert result.validation["accuracy"].value == max(scores)
    assert "Run 4 of 4: train.schedule.peak=0.1, model.width=8" in capsys.readouterr().err
    systems = find_systems([tmp_path / "runs"])
    assert [len(each.folders) for each in systems] == [2, 2, 2, 2]
    assert sorted(Path(each.name).name for each in systems) == sorted(result.runs)

    losses = {name: each.validation["loss"].value for name, each in result.runs.items()}
    again = train(tmp_path / "runs", resume=True, quiet=True)  # all runs are finished
    assert isinstance(again, GridResults)
    assert {name: each.validation["loss"].value for name, each in again.runs.items()} == losses


def test_mistakes_are_found_before_any_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown setting model\.wdth \(grid\)"):
        train(recipe(tmp_path, grid={"model.wdth": [4]}))
    with pytest.raises(ConfigError, match="greater than"):
        train(recipe(tmp_path, grid={"model.width": [4, -1]}))
    assert not (tmp_path / "runs").exists()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "config.yaml").touch()
    with pytest.raises(ConfigError, match="contains a run, and a grid would write its runs into it"):
        train(recipe(tmp_path, grid={"model.width": [4]}))


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"out": ["a", "b"]}, "grid: out cannot vary"),
        ({"train.seed": []}, "grid: train.seed has no values"),
        ({f"train.k{number}": [1, 2, 3, 4] for number in range(5)}, "1,024 combinations are too many"),
    ],
)
def test_unusable_grids(grid: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        grid_points(grid)


def test_names_of_folders() -> None:
    grid = {"model.encoder.layers": [1], "model.decoder.layers": [2], "text.kind": ["a b/c", {"x": 1}]}
    assert list(grid_points(grid)) == [
        "encoder.layers-1_decoder.layers-2_kind-a-b-c",
        "encoder.layers-1_decoder.layers-2_kind--x-1-",
    ]
    assert list(grid_points({"text.kind": ["a b", "a/b"]})) == ["run-1", "run-2"]


def test_the_seeds_of_a_grid_share_the_prepared_corpus(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").touch()
    shared = tmp_path / "prepared"
    assert prepared_folder(tmp_path / "width-4" / "seed-1") == prepared_folder(tmp_path / "width-8") == shared
    assert prepared_folder(tmp_path / "other" / "runs" / "a") == tmp_path / "other" / "runs" / "prepared"


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(".".join), unique=True, min_size=1))
def test_short_names_differ(keys: list[str]) -> None:
    short = short_names(keys)
    assert len(set(short.values())) == len(keys)
    assert all(key == name or key.endswith(f".{name}") for key, name in short.items())


def test_a_grid_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = recipe(tmp_path)
    given = [f"data.train={tmp_path}/data.tsv", f"data.valid={tmp_path}/data.tsv", "task.kind=classification"]
    given += ["model.preset=null", "model.width=4", "model.encoder.kind=mean", "train.max_steps=1"]
    assert main(["train", *given, "grid={train.schedule.peak: [0.1, 0.2]}", "--out", settings["out"], "--quiet"]) == 0
    assert "2 runs; on the validation set" in capsys.readouterr().out
