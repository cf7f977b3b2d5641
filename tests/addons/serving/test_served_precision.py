"""The precision of a server follows the measurement in the model folder, and is shown with its reason."""

import json
from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from dragoman.addons.serving.config import EngineConfig, ModelConfig, QueueConfig
from dragoman.addons.serving.http.metrics import Metrics
from dragoman.addons.serving.models.served_models import ServedModel
from dragoman.checkpoint.folder import PRECISION, fingerprint
from dragoman.engines.native import automatic_precision
from dragoman.native.build import best_library
from dragoman.native.library import code_bits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("precision") / "model"
    write_tiny_model(folder)
    return folder


def measure(folder: Path, loss: float, model: str | None = None) -> None:
    """Write a measurement. loss: by how many points the BLEU of int8 is lower."""
    int8 = {"bleu": 40 - loss, "chrf": 60, "bits": code_bits(best_library()), "differing_lines": 65, "speed": 2.0}
    names = dict.fromkeys(("data", "data_fingerprint", "bleu_signature", "chrf_signature"), "")
    sizes = {"sentences": 1014, "set_size": 1014, "beam": 5}
    values = {"format_version": 1, "model": model or fingerprint(folder), **names, **sizes}
    float32 = {"bleu": 40, "chrf": 60}
    (folder / PRECISION).write_text(json.dumps({**values, "float32": float32, "int8": [int8]}))


@pytest.mark.parametrize(
    ("loss", "settings", "precision", "reason"),
    [
        (0.1, {}, "int8", "int8: 2.0 times as fast as float32 on this processor; BLEU changes by -0.10"),
        (0.1, {"name": "native"}, "int8", "int8: 2.0 times as fast"),
        (0.1, {"precision": "float32"}, "float32", "engine.precision is float32"),
        (0.1, {"precision": None}, "float32", "engine.precision is null"),
        (0.1, {"name": "torch"}, "float32", "float32: the default of the engine"),
        (0.3, {}, "float32", "float32: with int8, BLEU changes by -0.30"),
        (0.3, {"precision": "int8"}, "int8", "engine.precision is int8"),
        (None, {}, "float32", "float32: what int8 costs has not been measured"),
    ],
)
def test_the_measurement_decides(
    loss: float | None,
    settings: dict[str, object],
    precision: str,
    reason: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automatic_precision, "relative_speed", lambda precision, library: 2.0)
    (folder / PRECISION).unlink(missing_ok=True)
    if loss is not None:
        measure(folder, loss)
    engine = EngineConfig.model_validate({"threads": 1, **settings})
    model = ServedModel(ModelConfig(path=folder, source="en", target="de"), engine, QueueConfig(), lambda batch: None)
    try:
        assert model.precision == precision and model.precision_reason.startswith(reason), model.precision_reason
        metrics = Metrics()
        metrics.watch("tiny", model)
        (line,) = [each for each in metrics.text().decode().splitlines() if each.startswith("dragoman_model_info{")]
        assert f'model="tiny",precision="{precision}",reason="{reason}' in line and 'source="en",targets="de"' in line
    finally:
        model.close()
