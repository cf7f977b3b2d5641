"""The server says what speaks against a translation: another language, unknown words, and a low probability."""

from pathlib import Path
from typing import Any

import pytest
from known_words import known_words
from scripted_server import posted, served, shouting
from tiny_model import write_tiny_model

from dragoman.addons.serving.config import DoubtsConfig, EngineConfig, ModelConfig, QueueConfig
from dragoman.addons.serving.models.served_models import ServedModel
from dragoman.checkpoint.confidence import Confidence
from dragoman.checkpoint.folder import META, read_meta
from dragoman.checkpoint.meta import dump_meta
from dragoman.inference.translation.doubts import DoubtFinder

GERMAN = "Der kleine Hund schläft heute auf dem Sofa."
ENGLISH = "The small dog is sleeping on the sofa today."
CONFIDENCE = Confidence(system="neural", intercept=90, slope=50, lowest=-9, correlation=0.6, sentences=200, mean=60)


def test_a_text_in_another_language_than_named_is_told() -> None:
    """Also through a pivot language, and for each text of a list; not if the language is detected, or hard to tell."""
    with served({"en-de": shouting, "de-fr": shouting}, pivots=["de"]) as service:
        for target in ("de", "fr"):
            answer = posted(service, "/v1/translate", text=[GERMAN, ENGLISH, "Hund"], source="en", target=target)
            found = [each["other_language"] for each in answer.json()["translations"]]
            assert found[0]["language"] == "de" and found[0]["confidence"] >= 95
            assert found[1:] == [None, None]
        detected = posted(service, "/v1/translate", text=GERMAN, source="auto", target="fr").json()
        assert detected["translations"][0]["other_language"] is None


def test_unknown_words_and_improbable_sentences_are_told() -> None:
    """For each sentence by the model that translates it; without a measurement, no quality is expected."""
    text = "the house stands. дом."
    with served({"en-de": shouting}) as service:
        (model,) = service.directions.models

        def sentences(finder: DoubtFinder) -> list[dict[str, Any]]:
            model.doubts = finder
            answer = posted(service, "/v1/translate", text=text, source="en", target="de").json()
            return answer["translations"][0]["sentences"]  # type: ignore[no-any-return]

        found = sentences(DoubtFinder(known_words(), None, 30))
        assert [each["unknown_words"] for each in found] == [[], ["дом"]]
        assert [(each["expected_chrf"], each["doubtful"]) for each in found] == [(None, False)] * 2
        encoded = map(model.translator.tokenizers.target.encode, ("THE HOUSE STANDS.", "ДОМ."))
        expected = [90 - 50 / (len(ids) + 1) for ids in encoded]
        found = sentences(DoubtFinder(known_words(), CONFIDENCE, sum(expected) / 2))
        assert [each["expected_chrf"] for each in found] == [round(each, 1) for each in expected]
        assert [each["doubtful"] for each in found] == [each < sum(expected) / 2 for each in expected]
        assert {each["doubtful"] for each in found} == {True, False}


@pytest.mark.parametrize(("system", "known"), [("neural", True), ("hybrid", False)])
def test_the_measurement_of_the_served_system_is_used(system: str, known: bool, tmp_path: Path) -> None:
    """That of the folder's own model, with the threshold of the settings; a measurement of another one is not used."""
    folder = tmp_path / "model"
    write_tiny_model(folder)
    meta = read_meta(folder).model_copy(update={"confidence": CONFIDENCE.model_copy(update={"system": system})})
    (folder / META).write_text(dump_meta(meta))
    config = ModelConfig(path=folder, source="en", target="de")
    engine, queue = EngineConfig(threads=1), QueueConfig()
    model = ServedModel(config, engine, queue, lambda batch: None, doubts=DoubtsConfig(expected_chrf=100))
    try:
        assert model.doubts is not None
        (best,) = model.translator.translate_nbest(["a dog runs ."])[0]
        found = model.doubts.doubts("a dog runs .", best)
        assert (found.expected_chrf is not None, found.is_improbable) == (known, known)
    finally:
        model.close()
