"""Damaged, foreign or hostile model folders raise a ModelError that names the problem, and never crash."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from tiny_model import tiny_config, tiny_model, tiny_tokenizers, write_tiny_model

from dragoman.base.errors import ModelError
from dragoman.checkpoint.folder import (
    CONFIG,
    META,
    PARAMETERS,
    LoadedModel,
    load_model_folder,
    model_parameters,
    read_meta,
)
from dragoman.checkpoint.tensors import load_tensors, save_tensors

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pristine") / "model"
    write_tiny_model(folder)
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "model"))


def refusal(folder: Path) -> str:
    with pytest.raises(ModelError) as error:
        load_model_folder(folder, CPU)
    return str(error.value)


def change_parameters(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors, metadata = load_tensors(folder / PARAMETERS)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    change(tensors)
    save_tensors(folder / PARAMETERS, tensors, metadata)


def change_config(folder: Path, change: Callable[[dict[str, object]], None]) -> None:
    content = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    change(content["model"])
    (folder / CONFIG).write_text(yaml.safe_dump(content), encoding="utf-8")


def header(size: int, text: bytes, body: bytes = b"") -> bytes:
    return struct.pack("<Q", size) + text + body


def describe(**tensors: tuple[list[int], list[int]]) -> bytes:
    return json.dumps(
        {name: {"dtype": "F32", "shape": shape, "data_offsets": place} for name, (shape, place) in tensors.items()}
    ).encode()


def test_an_intact_folder_loads_with_the_same_parameters(tmp_path: Path) -> None:
    written = write_tiny_model(tmp_path / "model", step=7)
    state = torch.random.get_rng_state()
    loaded = load_model_folder(tmp_path / "model", CPU)
    assert isinstance(loaded, LoadedModel)
    assert torch.equal(torch.random.get_rng_state(), state), "loading moved the caller's random generator"
    assert loaded.meta.step == 7
    assert not loaded.model.training
    for name, tensor in model_parameters(written).items():
        assert torch.equal(model_parameters(loaded.model)[name], tensor), name
    assert loaded.config["model"]["width"] == 8


def test_tied_parameters_are_stored_once_and_stay_tied(folder: Path) -> None:
    tensors, metadata = load_tensors(folder / PARAMETERS)
    model = load_model_folder(folder, CPU).model
    assert sum(tensor.numel() for tensor in tensors.values()) == sum(p.numel() for p in model.parameters())
    assert len(model.state_dict()) > len(tensors)
    assert metadata == {"format_version": "1", "step": "3"}


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.01, 0.1, 0.5, 0.9, 0.9999])
def test_truncated_parameters(folder: Path, share: float) -> None:
    whole = (folder / PARAMETERS).read_bytes()
    (folder / PARAMETERS).write_bytes(whole[: int(len(whole) * share)])
    text = refusal(folder)
    assert str(folder / PARAMETERS) in text
    assert "Copy it again" in text


def test_parameters_with_trailing_bytes(folder: Path) -> None:
    with (folder / PARAMETERS).open("ab") as file:
        file.write(b"\0" * 8)
    assert "is damaged" in refusal(folder)


HOSTILE = {
    "header larger than any memory": header(2**63, b"{}"),
    "header larger than the file": header(10_000, b"{}"),
    "header of 90 MB that is not there": header(90_000_000, b"{"),
    "no JSON": header(4, b"\xff\xfe\xfd\xfc"),
    "a list": header(2, b"[]"),
    "JSON nested without end": header(50_000, b'{"a":' * 10_000),
    "tensor outside the file": header(len(text := describe(a=([4], [0, 16]))), text),
    "shape whose size overflows": header(len(text := describe(a=([2**40, 2**40], [0, 16]))), text, b"\0" * 16),
    "shape that disagrees with its bytes": header(len(text := describe(a=([1000], [0, 16]))), text, b"\0" * 16),
    "overlapping tensors": header(len(text := describe(a=([4], [0, 16]), b=([4], [8, 24]))), text, b"\0" * 24),
    "offsets backwards": header(len(text := describe(a=([4], [16, 0]))), text, b"\0" * 16),
    "negative offset": header(len(text := describe(a=([4], [-16, 0]))), text, b"\0" * 16),
    "hole between tensors": header(len(text := describe(a=([1], [0, 4]), b=([1], [8, 12]))), text, b"\0" * 12),
    "noise": bytes(range(256)) * 20,
    "empty": b"",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_headers(folder: Path, content: bytes) -> None:
    (folder / PARAMETERS).write_bytes(content)
    assert str(folder / PARAMETERS) in refusal(folder)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"\x80\x02}q\x00.", "pickle"),
        (b"PK\x03\x04" + b"\0" * 40, "pickle"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    ],
)
def test_other_kinds_of_file_are_recognised_and_never_opened(folder: Path, content: bytes, word: str) -> None:
    (folder / PARAMETERS).write_bytes(content)
    assert word in refusal(folder)


def test_all_differences_are_listed_at_once(folder: Path) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        names = [name for name in tensors if "layers" in name]
        del tensors[names[0]]
        tensors[names[1]] = torch.zeros(3, 5)
        tensors["surplus.weight"] = torch.zeros(2)
        tensors[names[2]] = torch.zeros(tensors[names[2]].shape, dtype=torch.int32)

    names = [name for name in sorted(load_tensors(folder / PARAMETERS)[0]) if "layers" in name]
    change_parameters(folder, change)
    text = refusal(folder)
    assert f"missing: {names[0]} " in text
    assert f"wrong shape: {names[1]} is (3, 5), but the configuration requires" in text
    assert "unknown: surplus.weight (2,)" in text
    assert f"wrong type: {names[2]} is I32" in text
    assert "4 differences" in text


def test_parameters_of_another_architecture(folder: Path) -> None:
    change_config(folder, lambda model: model.update(width=16))
    text = refusal(folder)
    assert "wrong shape" in text
    assert "different runs" in text


def test_tokenizer_of_another_size(folder: Path) -> None:
    other = tiny_tokenizers(270)
    other.save(folder)
    text = refusal(folder)
    assert f"{other.source.size} entries" in text
    assert "are of different runs" in text


def test_separate_vocabularies_under_tied_embeddings(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    tiny_tokenizers(280).source.save(folder / "tokenizer.source.json")
    tiny_tokenizers(270).target.save(folder / "tokenizer.target.json")
    text = refusal(folder)
    assert str(folder) in text
    assert "shared vocabulary" in text


@pytest.mark.parametrize("key", ["width", "layers", "feedforward", "heads"])
def test_configuration_of_an_enormous_model(folder: Path, key: str) -> None:
    def change(model: dict[str, object]) -> None:
        group = model if key == "width" else model["encoder"]
        assert isinstance(group, dict)
        group[key] = 2**40

    change_config(folder, change)
    assert str(2**40) in refusal(folder)


def test_configuration_with_an_unknown_setting_names_the_file(folder: Path) -> None:
    change_config(folder, lambda model: model.update(widht=16))
    text = refusal(folder)
    assert str(folder / CONFIG) in text
    assert "did you mean width?" in text


@pytest.mark.parametrize("content", ["", "model: 3\n", "model: [", "\x00", "other: {}\n"])
def test_broken_configuration(folder: Path, content: str) -> None:
    (folder / CONFIG).write_text(content, encoding="utf-8")
    assert str(folder / CONFIG) in refusal(folder)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "damaged"),
        ("[" * 100_000, "damaged"),
        ("[]", "format_version"),
        ('{"step": 3}', "format_version"),
        ('{"format_version": 2, "step": 3}', "update dragoman"),
        ('{"format_version": 1, "step": -3}', "damaged"),
        ('{"format_version": 1, "steps": 3}', "damaged"),
    ],
)
def test_broken_meta(folder: Path, content: str, word: str) -> None:
    (folder / META).write_text(content, encoding="utf-8")
    text = refusal(folder)
    assert str(folder / META) in text
    assert word in text


def test_broken_tokenizer(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:1000])
    assert str(path) in refusal(folder)


@pytest.mark.parametrize("name", [PARAMETERS, CONFIG, META, "tokenizer.json"])
def test_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    text = refusal(folder)
    assert "is not a model folder" in text
    assert name in text


def test_wrong_folders(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "none")
    (tmp_path / "file").touch()
    assert "is a file" in refusal(tmp_path / "file")
    assert f"{PARAMETERS}, {CONFIG}, {META}, tokenizer.json missing" in refusal(tmp_path)


def test_unfinished_run_points_to_its_last_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoints" / "step-00000003"
    write_tiny_model(checkpoint)
    assert f"{checkpoint} can be used" in refusal(tmp_path)


def test_the_model_folders_in_a_folder_are_named(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_tiny_model(tmp_path / name)
    assert f"tokenizer.json missing. It contains model folders, such as {tmp_path / 'a'}" in refusal(tmp_path)


def test_scores_of_another_step_are_ignored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    score = {"metric": "BLEU", "value": 40.0, "signature": "x", "data": "valid"}
    (folder / META).write_text(json.dumps({**meta, "scores": [score]}), encoding="utf-8")
    assert len(load_model_folder(folder, CPU).meta.scores) == 1
    (folder / META).write_text(json.dumps({**meta, "step": 9, "scores": [score]}), encoding="utf-8")
    loaded = load_model_folder(folder, CPU)
    assert loaded.meta.step == 3
    assert loaded.meta.scores == ()
    assert "step 9" in capsys.readouterr().err
    assert read_meta(folder).step == 9


def test_half_precision_parameters_load(folder: Path) -> None:
    change_parameters(folder, lambda tensors: tensors.update({n: t.bfloat16() for n, t in tensors.items()}))
    expected = model_parameters(tiny_model(tiny_config(), tiny_tokenizers()))
    for name, tensor in model_parameters(load_model_folder(folder, CPU).model).items():
        assert torch.equal(tensor, expected[name].bfloat16().float()), name
