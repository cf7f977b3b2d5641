"""A classifier with a config and a loaded class of its own: loaded, predicting, served, and inspected."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
import torch
from scripted_server import FREE, asked
from tiny_model import SOURCES, tiny_config, tiny_tokenizers
from torch import Tensor, nn

import dragoman
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.models.served_models import Directions
from dragoman.addons.serving.models.served_predictors import Predictors, ServedPredictor
from dragoman.addons.serving.service.service import Service
from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import load_model_folder, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.main import main
from dragoman.data.batches.batch import pad
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.subject import NO_SETTINGS, Subject, SubjectSettings
from dragoman.models.attention_weights import END
from dragoman.models.families.family import SideContext
from dragoman.models.families.union import EncoderConfig
from dragoman.models.interface import Trial
from dragoman.models.kinds.registry import KINDS, ModelKind
from dragoman.models.settings import ModelSettings
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, token_table
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.text.symbols import EOS
from dragoman.text.tokenizers import VocabularySizes

LABELS = ("animal", "other")


class OwnConfig(ModelSettings):
    kind: Literal["own_classifier"] = "own_classifier"
    encoder: EncoderConfig

    def build_for(self, sizes: VocabularySizes) -> "OwnModule":
        return OwnModule(self, sizes.source)


class OwnModule(nn.Module):
    limits = ()

    def __init__(self, config: OwnConfig, size: int) -> None:
        super().__init__()
        positions = RotaryConfig()
        embedding = Embedding(token_table(size, 8), positions.build_embedding(8), dropout=0.0)
        self.encoder = config.encoder.build(SideContext(embedding, 8, DropoutConfig(), positions))
        self.head = nn.Linear(8, len(LABELS))

    def trial(self, length: int) -> Trial:
        tokens = torch.ones(1, length, dtype=torch.int64, device=self.head.weight.device)
        return Trial((tokens, tokens > 0))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.head(self.encoder(tokens, mask).summary)  # type: ignore[no-any-return]


class OwnClassifier:
    """What `dragoman.load` returns."""

    task, labels = "animals", LABELS

    def __init__(self, folder: Path, device: str | None = None) -> None:
        loaded = load_model_folder(folder, torch.device(device or "cpu"), "predict")
        self.kind, self.model, self.tokenizer = KIND, loaded.model, loaded.tokenizers.source

    def predict(self, texts: Sequence[str], *, batch_tokens: int = 4096, first: int = 1) -> list[ClassPrediction]:
        with torch.inference_mode():
            rows = self.model(*pad(self.tokenizer.encode_batch(texts), after=(EOS,))).softmax(1).tolist()
        return [ClassPrediction(LABELS[row.index(max(row))], dict(zip(LABELS, row, strict=True))) for row in rows]

    def subject(self, text: str, settings: SubjectSettings = NO_SETTINGS) -> Subject:
        (found,), ids = self.predict([text]), self.tokenizer.encode(text)
        label = LABELS.index(found.label)

        def select(logits: Tensor) -> Tensor:
            return logits[0].log_softmax(-1)[label].reshape(1)

        output, names = f"log-probability of {found.label!r}", (*self.tokenizer.pieces(ids), END)
        return Subject(self.model, pad([ids], after=(EOS,)), output, (found.label,), select, text, found.label, names)


ABILITIES = frozenset({"predict", "inspect"})
KIND = ModelKind("own_classifier", OwnConfig, "classifier", ("source",), "labels", ABILITIES, "it", OwnClassifier)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(KINDS, KIND.name, KIND)
    config, tokenizers = OwnConfig(encoder=tiny_config().encoder), tiny_tokenizers()
    torch.manual_seed(2)
    section = dump_settings(config).replace("\n", "\n  ").strip()
    parameters = model_parameters(config.build_for(tokenizers.sizes))
    write_model_folder(tmp_path / "own", parameters, f"model:\n  {section}\n", tokenizers, Meta(step=1))
    return tmp_path / "own"


def test_it_is_loaded_and_predicts(folder: Path, tmp_path: Path) -> None:
    model = dragoman.load(folder)
    assert isinstance(model, OwnClassifier) and model.kind is KIND
    (tmp_path / "texts").write_text("\n".join(SOURCES) + "\n")
    assert main(["predict", str(folder), "-i", str(tmp_path / "texts"), "-o", str(tmp_path / "out")]) == 0
    written = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert written == [{"id": str(n), **each.as_json()} for n, each in enumerate(model.predict(SOURCES), 1)]
    assert main(["predict", str(folder), "-i", str(tmp_path / "texts"), "--format", "tsv"]) == 2
    with pytest.raises(ConfigError, match="task does not apply to .*, which is a classifier: remove it"):
        dragoman.load(folder, task="animals")
    with pytest.raises(ModelError, match="it cannot translate"):
        dragoman.Translator.load(folder)


def test_it_is_served(folder: Path) -> None:
    config = ServeConfig.model_validate({"models": [{"path": str(folder)}], "access": FREE, "hosts": ["server"]})
    service: Any = Service(config.limits, None, config.queue, lambda *_: None)
    service.config = config
    service.open(Directions([], ()), Predictors([ServedPredictor(config.models[0], config.engine, "own")]))
    answer: httpx.Response = asked(service, lambda client: client.post("/v1/predict", json={"text": SOURCES}))
    service.close()
    expected = [each.label for each in dragoman.load(folder).predict(SOURCES)]
    assert [each["label"] for each in answer.json()["predictions"]] == expected


def test_it_is_inspected(folder: Path, tmp_path: Path) -> None:
    inspection = dragoman.inspect(folder, SOURCES[0])
    (weights,) = inspection.kinds["encoder.self_attention"]
    assert weights.queries == weights.keys and weights.weights.sum(2) == pytest.approx(1, abs=1e-5)
    assert main(["inspect", str(folder), SOURCES[0], "--out", str(tmp_path / "pictures")]) == 0
    assert (tmp_path / "pictures" / "index.html").is_file()
    assert main(["inspect", "heads", str(folder), SOURCES[0]]) == 0
