"""An engine from outside the package serves translators, predictors and language models, also in a server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_server import FREE, posted
from tiny_language_model import write_tiny_language_model
from tiny_model import SOURCES, write_tiny_model
from tiny_predictor import write_predictor

import dragoman
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.models.served_models import Directions, ServedModel
from dragoman.addons.serving.models.served_predictors import Predictors, ServedPredictor
from dragoman.addons.serving.service.control_defaults import ControlDefaults
from dragoman.addons.serving.service.service import Service
from dragoman.base.errors import ConfigError
from dragoman.checkpoint.folder import LoadedModel
from dragoman.cli.main import main
from dragoman.engines.engine import Engine
from dragoman.engines.registry import ENGINES, EngineKind, EngineSettings, register_engine
from dragoman.engines.registry import Service as Serves
from dragoman.engines.torch.engine import TorchEngine

BUILT: list[tuple[str, EngineSettings]] = []
"""What the engine was built for."""


def build_translator(loaded: LoadedModel, settings: EngineSettings) -> Engine:
    """A real engine would convert the parameters and compute with another library."""
    BUILT.append(("translate", settings))
    return TorchEngine(loaded.model, loaded.tokenizers, settings.device)


def build_predictor(model: Any, settings: EngineSettings) -> Any:
    BUILT.append(("predict", settings))
    return model


def build_language_model(model: Any, settings: EngineSettings) -> Any:
    BUILT.append(("generate", settings))
    return model


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = list(ENGINES)
    services = {
        "translate": Serves(build_translator, precisions=("float32", "int8")),
        "predict": Serves(build_predictor),
        "generate": Serves(build_language_model),
    }
    register_engine(EngineKind("outside", services))  # type: ignore[arg-type]
    BUILT.clear()
    yield
    ENGINES[:] = before


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One model for each ability."""
    folder = tmp_path_factory.mktemp("models")
    write_tiny_model(folder / "translate")
    write_predictor(folder / "predict", "requests")
    write_tiny_language_model(folder / "generate")
    return {path.name: path for path in folder.iterdir()}


def test_python(folders: dict[str, Path]) -> None:
    outputs = []
    for engine in ("outside", "torch"):
        translator = dragoman.Translator.load(folders["translate"], "cpu", engine)
        predictor = dragoman.Predictor.load(folders["predict"], "cpu", engine=engine)
        writer = dragoman.LanguageModel.load(folders["generate"], "cpu", engine=engine)
        assert predictor.engine.name == writer.engine.name == engine
        outputs.append((translator.translate(SOURCES), predictor.predict(["ok"]), writer.generate(["a"], max_tokens=3)))
    assert outputs[0] == outputs[1]
    assert [ability for ability, _ in BUILT] == ["translate", "predict", "generate"]
    assert {settings.precision for _, settings in BUILT} == {"float32"}
    dragoman.Translator.load(folders["translate"], "cpu", "outside", "int8", 3)
    assert (BUILT[-1][1].precision, BUILT[-1][1].threads) == ("int8", 3)


@pytest.mark.parametrize("ability", ["translate", "predict", pytest.param("generate", marks=pytest.mark.slow)])
def test_the_command_line(
    ability: str, folders: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "input").write_text("a dog .\n", encoding="utf-8")
    command = [ability, str(folders[ability]), "--input", str(tmp_path / "input"), "--device", "cpu"]
    assert main([*command, "--engine", "outside"]) == 0
    assert [each for each, _ in BUILT] == [ability]
    capfd.readouterr()
    assert main([*command, "--engine", "elsewhere"]) == 2
    assert "unknown engine 'elsewhere': use auto, " in (message := capfd.readouterr().err) and "outside" in message
    assert main(command) == 0
    assert len(BUILT) == 1, "auto does not choose an engine without `automatic`"


def test_an_engine_serves_only_what_it_says(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.engines.choice.ENGINES", [EngineKind("narrow", {}), *ENGINES])
    with pytest.raises(ConfigError, match="the narrow engine does not serve translation models: use auto, native"):
        dragoman.Translator.load(folders["translate"], "cpu", "narrow")
    with pytest.raises(ConfigError, match="the narrow engine does not serve language models: use auto, outside, torch"):
        dragoman.LanguageModel.load(folders["generate"], "cpu", engine="narrow")
    with pytest.raises(ConfigError, match="the outside engine does not support int8: choose the engine native"):
        dragoman.Predictor.load(folders["predict"], "cpu", engine="outside", precision="int8")
    with pytest.raises(ConfigError, match="the outside engine does not support ensembles"):
        dragoman.Translator.load([folders["translate"]] * 2, "cpu", "outside")


def test_a_server(folders: dict[str, Path]) -> None:
    models = [{"path": str(folders[each])} for each in ("translate", "predict")]
    settings = {"models": models, "engine": {"name": "outside", "precision": None, "device": "cpu"}}
    config = ServeConfig.model_validate({**settings, "log": False, "access": FREE, "hosts": ["server"]})
    model = ServedModel(config.models[0], config.engine, config.queue, lambda batch: None)
    predictor = ServedPredictor(config.models[1], config.engine, "requests")
    service = Service(config.limits, ControlDefaults(config))
    service.config = config  # type: ignore[attr-defined]
    service.open(Directions([model], ()), Predictors([predictor]))
    try:
        found = posted(service, "/translate", q=SOURCES[0], source="en", target="de").json()
        labels = posted(service, "/v1/predict", text=["ok"]).json()
    finally:
        model.close()
    assert [each for each, _ in BUILT] == ["translate", "predict"]
    expected = dragoman.Translator.load(folders["translate"], "cpu", "torch").translate(SOURCES[:1])
    assert [found["translatedText"]] == expected and len(labels["predictions"]) == 1
