"""Imported models are served like our own."""

import json
from pathlib import Path

from scripted_server import FREE, asked, posted
from t5_folders import write_t5

from dragoman import Translator
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.models.served_models import Directions, ServedModel
from dragoman.addons.serving.service.control_defaults import ControlDefaults
from dragoman.addons.serving.service.service import Service
from dragoman.exchange.formats import import_model


def test_an_imported_t5_is_served_with_its_prefix(tmp_path: Path) -> None:
    write_t5(tmp_path / "theirs", seed=3)
    path = tmp_path / "theirs/generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_length": 9}))
    import_model(tmp_path / "theirs", tmp_path / "raw", quiet=True)
    import_model(tmp_path / "theirs", tmp_path / "t5", source_prefix="every stone:", quiet=True)
    texts = ["the sea and a day", "and a day", "", "a day. the sea!"]
    expected = Translator.load(tmp_path / "t5", "cpu").translate(texts)
    raw = Translator.load(tmp_path / "raw", "cpu").translate([f"every stone: {text}" for text in texts[:2]])
    assert expected[:3] == [*raw, ""]
    models = [{"path": str(tmp_path / "t5"), "source": "en", "target": "de"}]
    config = ServeConfig.model_validate({"models": models, "log": False, "access": FREE, "hosts": ["server"]})
    served = ServedModel(config.models[0], config.engine, config.queue, lambda batch: None)
    service = Service(config.limits, ControlDefaults(config))
    service.open(Directions([served], config.pivots))
    service.config = config  # type: ignore[attr-defined]
    try:
        answer = posted(service, "/translate", q=texts, source="en", target="de")
        assert answer.json() == {"translatedText": expected}
        best = posted(service, "/translate", q=texts[0], source="en", target="de", alternatives=2).json()
        assert best["translatedText"] and len(best["alternatives"]) == 2
        (described,) = asked(service, lambda client: client.get("/v1/models")).json()["models"]
        assert described == {"name": "t5", "kind": "translation", "source": "en", "targets": ["de"]}
    finally:
        served.close()
