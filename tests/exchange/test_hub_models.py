"""`dragoman import ORG/MODEL`: models of a server that speaks the Hugging Face Hub's protocol."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from gpt2_folders import write_gpt2
from hub_server import HubServer, hub_server
from safetensors.torch import load_file

from dragoman import import_model
from dragoman.base.errors import ModelError
from dragoman.checkpoint.folder import read_meta
from dragoman.cli.main import main

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
NAME = "org/tiny-gpt2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as it is on the Hub, with a card and files that an import does not need."""
    folder = tmp_path_factory.mktemp("hub") / "gpt2"
    write_gpt2(folder)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\nlanguage: en\n---\n# Tiny\n")
    (folder / "tf_model.h5").write_bytes(b"large")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    return folder


@pytest.fixture
def server(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    with hub_server() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        running.models[NAME] = {"main": folder}
        yield running


def test_the_needed_files_are_downloaded_and_described(server: HubServer, folder: Path, tmp_path: Path) -> None:
    import_model(folder, "local")
    assert main(["import", NAME, "--out", "remote"]) == 0
    expected, found = (load_file(tmp_path / each / "model.safetensors") for each in ("local", "remote"))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert not [name for name in server.downloads if name.endswith((".h5", "onnx/config.json"))]
    assert f"{NAME}/model.safetensors" in server.downloads
    commit = server.folder(NAME, "main")[0]  # type: ignore[index]
    meta = read_meta(tmp_path / "remote")
    assert f"GPT2LMHeadModel from {NAME}, revision {commit}, model.safetensors SHA-256 " in meta.origin
    assert meta.licence == "apache-2.0"
    card = (tmp_path / "remote" / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert f"{NAME}, revision {commit}" in card
    del server.downloads[:]
    import_model(NAME, "again", quiet=True)
    assert not server.downloads  # the cache has them


def test_a_revision_is_pinned(server: HubServer, folder: Path, tmp_path: Path) -> None:
    write_gpt2(other := tmp_path / "other", seed=2)
    server.models[NAME] |= {"v2": other, "refs/pr/1": other}
    commit = server.folder(NAME, "v2")[0]  # type: ignore[index]
    import_model(other, "local")
    expected = (tmp_path / "local" / "model.safetensors").read_bytes()
    for out, revision in enumerate(("v2", "refs/pr/1", commit)):
        import_model(f"{NAME}@{revision}", str(out), quiet=True)
        assert (tmp_path / str(out) / "model.safetensors").read_bytes() == expected
        assert read_meta(tmp_path / str(out)).licence is None
    import_model(NAME, "main")
    assert (tmp_path / "main" / "model.safetensors").read_bytes() != expected
    with pytest.raises(ModelError, match=f"{NAME} has no revision v3: see {server.address}/{NAME}/commits/main"):
        import_model(f"{NAME}@v3", "v3")


def test_pickles_are_only_downloaded_on_request(server: HubServer, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, pickled := tmp_path / "pickled")
    (pickled / "model.safetensors").unlink()
    torch.save(load_file(folder / "model.safetensors"), pickled / "pytorch_model.bin")
    server.models[NAME] = {"main": pickled}
    with pytest.raises(ModelError, match="has no model.safetensors. If it has pytorch_model.bin .* --allow-pickle"):
        import_model(NAME, "out")
    assert f"{NAME}/pytorch_model.bin" not in server.downloads
    import_model(NAME, "out", allow_pickle=True, quiet=True)
    assert f"{NAME}/pytorch_model.bin" in server.downloads


def test_a_local_folder_of_the_name_wins(server: HubServer, folder: Path) -> None:
    shutil.copytree(folder, NAME)
    import_model(NAME, "out", quiet=True)
    assert not server.downloads


def test_models_that_cannot_be_downloaded(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="no folder org/absent here, .*, or it is private:"):
        import_model("org/absent", "out")
    server.gated.add(NAME)
    with pytest.raises(ModelError, match=f"is gated: accept its terms at {server.address}/{NAME}, and log in"):
        import_model(NAME, "out")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(ModelError) as raised:
        import_model(NAME, "out")
    assert "cannot be downloaded from http://127.0.0.1:1" in str(raised.value)
    assert "a mirror (HF_ENDPOINT)" in str(raised.value)
    assert "\n" not in str(raised.value)
