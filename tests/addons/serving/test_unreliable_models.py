"""A server warns of a model that its training found worse than simple systems, and tells its clients."""

from pathlib import Path

import pytest
from scripted_server import posted, served, shouting
from tiny_model import write_tiny_model

from dragoman.addons.serving.config import EngineConfig, ModelConfig, QueueConfig
from dragoman.addons.serving.models.served_models import ServedModel
from dragoman.checkpoint.systems import write_verdict
from dragoman.checkpoint.verdict import COPYING, SystemRanges, Verdict


def verdict(system: str, worse: tuple[str, ...]) -> Verdict:
    others = (SystemRanges(system=COPYING, scores=(), worse=worse),)
    model = SystemRanges(system="model", scores=())
    return Verdict(data="valid", sentences=100, system=system, model=model, others=others)


@pytest.mark.parametrize(
    ("judged", "worse", "expected"),
    [("neural", ("BLEU",), True), ("neural", (), False), ("phrase_based", ("BLEU",), False)],
)
def test_a_server_warns_of_the_model_that_it_loads(
    judged: str, worse: tuple[str, ...], expected: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    write_tiny_model(folder)
    write_verdict(folder, verdict(judged, worse))
    config = ModelConfig(path=folder, source="en", target="de")
    model = ServedModel(config, EngineConfig(threads=1), QueueConfig(), lambda batch: None)
    model.close()
    shown = " ".join(capsys.readouterr().err.split())
    assert model.is_unreliable == expected
    assert ("not reliable. Not usable: it is worse than copying the source, by BLEU." in shown) == expected


def test_clients_learn_which_translations_are_not_reliable() -> None:
    with served({"en-de": shouting, "de-fr": shouting, "en-it": shouting}, pivots=["de"]) as service:
        service.directions.models[1].is_unreliable = True
        answers = [posted(service, "/v1/translate", text="A", source="en", target=each).json() for each in ("it", "fr")]
        assert [each["unreliable"] for each in answers] == [False, True]
