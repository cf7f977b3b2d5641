"""Model folders of format 1 remain readable: the frozen one translates and scores as on the day it was written."""

import hashlib

import pytest
from repository import FORMAT_1

from dragoman.inference.translation.translator import Translator

FOLDER = FORMAT_1
# The folder is never rewritten: a change that cannot read it needs a new format version and a conversion.
DIGESTS = {
    "README.md": "bb0e1c3d2e85b1be",
    "config.yaml": "b9dd395f2c578c24",
    "meta.json": "7551a10c48e8fe2d",
    "model.safetensors": "f0dc6c1381ad6577",
    "tokenizer.json": "06e84a3bc3340027",
}
LEARNED, UNKNOWN = "a dog runs in the park .", "the man sleeps in two parks ."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(FOLDER, "cpu")


def test_the_folder_is_as_it_was_written() -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in FOLDER.iterdir()}
    assert found == DIGESTS


def test_it_translates_as_it_did(translator: Translator) -> None:
    translations = [best[0] for best in translator.translate_nbest([LEARNED, UNKNOWN])]
    assert [each.text for each in translations] == ["ein Hund rennt im Park .", "zwei Männnenark ."]
    assert [each.log_probability for each in translations] == pytest.approx([-1.547637, -6.428632], abs=1e-4)
    assert [each.score for each in translations] == pytest.approx([-0.775011, -3.568924], abs=1e-4), "search settings"


def test_it_scores_as_it_did(translator: Translator) -> None:
    right, wrong = translator.score(["a man runs ."] * 2, ["ein Mann rennt .", "zwei Hunde rennen ."])
    assert (right.tokens, wrong.tokens) == (11, 9)
    assert right.log_probability == pytest.approx(-1.247286, abs=1e-4)
    assert wrong.log_probability == pytest.approx(-45.359067, abs=1e-3)


def test_it_names_its_origin(translator: Translator) -> None:
    meta = translator.meta
    assert (meta.format_version, meta.step, meta.averaged_steps) == (1, 600, (400, 600))
    assert (meta.source_language, meta.target_language, meta.licence) == ("en", "de", "CC0-1.0")
    assert [(score.metric, score.signature.partition("|")[0]) for score in meta.scores] == [
        ("BLEU", "nrefs:1"),
        ("perplexity", "per token"),
    ]
