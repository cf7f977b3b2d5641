"""The run folder's store: kept and refused files, and the mean of checkpoints."""

import os
from pathlib import Path

import pytest
import torch
from related_models import bring_close
from tiny_model import tiny_tokenizers, write_tiny_model

from dragoman.base.errors import ConfigError, ModelError, ResourceError
from dragoman.checkpoint.average import average, average_parameters
from dragoman.checkpoint.folder import PARAMETERS, load_model_folder, model_parameters
from dragoman.checkpoint.store import CheckpointStore
from dragoman.checkpoint.tensors import load_tensors, save_tensors

CPU = torch.device("cpu")


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-3] ^= 0x40
    file.write_bytes(content)


def test_a_damaged_snapshot_is_skipped_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with CheckpointStore(tmp_path) as store:
        assert store.latest_training() is None
        for step in (1, 2, 3):
            store.commit_training(step, {"model": {"a": torch.full((5,), float(step))}}, {"seen": [step]})
        assert entries(tmp_path / "training") == ["step-00000002", "step-00000003"]
        damage(tmp_path / "training" / "step-00000003" / "model.safetensors")
        snapshot = store.latest_training()
        assert snapshot is not None
        assert snapshot.step == 2
        assert snapshot.state == {"seen": [2]}
        assert "checksum" in capsys.readouterr().err
        store.discard_after(2)
        assert entries(tmp_path / "training") == ["step-00000002"]
        (tmp_path / "training" / "step-00000002" / "state.json").write_text("{", encoding="utf-8")
        with pytest.raises(ModelError, match="start over"):
            store.latest_training()


def test_two_processes_cannot_train_into_one_folder(tmp_path: Path) -> None:
    with CheckpointStore(tmp_path), pytest.raises(ResourceError, match=f"in use by process {os.getpid()}"):
        CheckpointStore(tmp_path)
    CheckpointStore(tmp_path).close()


def test_views_of_one_buffer_are_stored_each(tmp_path: Path) -> None:
    flat = torch.arange(10.0)
    save_tensors(tmp_path / "a.safetensors", {"a": flat[:4], "b": flat[4:].view(2, 3), "c": flat[::2]}, {"k": "v"})
    tensors, metadata = load_tensors(tmp_path / "a.safetensors")
    assert metadata == {"k": "v"}
    assert torch.equal(tensors["a"], flat[:4])
    assert torch.equal(tensors["b"], flat[4:].view(2, 3))
    assert torch.equal(tensors["c"], flat[::2])


def test_prune_and_order(tmp_path: Path) -> None:
    with CheckpointStore(tmp_path) as store:
        for step in (100_000_000, 3, 20):
            write_tiny_model(store.checkpoint_folder(step), step=step)
        steps = [3, 20, 100_000_000]
        assert store.checkpoints() == [store.checkpoint_folder(step) for step in steps]
        store.prune({store.checkpoint_folder(20), tmp_path / "elsewhere"})
        assert store.checkpoints() == [store.checkpoint_folder(20)]


def test_average_is_the_mean_and_loads(tmp_path: Path) -> None:
    folders = [tmp_path / str(step) for step in (1, 2, 3)]
    for step, folder in enumerate(folders, 1):
        write_tiny_model(folder, step=step)
        bring_close(folder, folders[0], seed=step)
    average(folders, tmp_path / "mean")
    loaded = load_model_folder(tmp_path / "mean", CPU)
    assert (loaded.meta.step, loaded.meta.averaged_steps) == (3, (1, 2, 3))
    models = [model_parameters(load_model_folder(folder, CPU).model) for folder in folders]
    for name, tensor in model_parameters(loaded.model).items():
        mean = torch.stack([model[name].double() for model in models]).mean(0)
        torch.testing.assert_close(tensor.double(), mean, rtol=0, atol=1e-7)


def test_models_of_different_runs_are_not_averaged(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_tiny_model(tmp_path / str(seed), seed=seed)
    with pytest.raises(ModelError, match=r"similarity of their parameters is -?0\.\d\d, .* as an ensemble"):
        average([tmp_path / "1", tmp_path / "2"], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_meaningless_averages_are_refused(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "a")
    write_tiny_model(tmp_path / "b")
    write_tiny_model(tmp_path / "c")
    tiny_tokenizers(270).save(tmp_path / "b")
    tensors, metadata = load_tensors(tmp_path / "c" / PARAMETERS)
    save_tensors(tmp_path / "c" / PARAMETERS, {**tensors, "more": torch.zeros(1)}, metadata)
    with pytest.raises(ModelError, match="different vocabularies"):
        average([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")
    with pytest.raises(ModelError, match="more differ"):
        average([tmp_path / "a", tmp_path / "c"], tmp_path / "mean")
    with pytest.raises(ModelError, match="no checkpoint"):
        average_parameters([])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(ConfigError, match="choose another --out"):
        average([tmp_path / "a", tmp_path / "a"], tmp_path / "full")
