"""Continuous batching gives the results of window translation, and leaves special lines to it."""

import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tiny_model import SOURCES, tiny_config, write_tiny_model
from waiting import PATIENCE

from dragoman.decode.decoding import Sampling
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.translation.continuous import ContinuousTranslation
from dragoman.inference.translation.request import TextRequest
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Translator

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("model")
    write_tiny_model(folder, config=tiny_config(positions={"kind": "learned", "limit": 40}))
    return Translator.load(folder, engine="auto", threads=2)


def opened(translator: Translator) -> ContinuousTranslation:
    found = translator.continuous(8)
    assert found is not None, "the native engine is available"
    return found


def drain(batch: ContinuousTranslation) -> list[tuple[TextRequest, list[Translation]]]:
    done: list[tuple[TextRequest, list[Translation]]] = []
    until = time.monotonic() + PATIENCE
    while batch.in_progress:
        assert time.monotonic() < until
        done += batch.completed(0.2)
    return done


def shown(found: Sequence[Translation]) -> list[tuple[str, float, tuple[int, ...], bool]]:
    return [(each.text, each.score, tuple(each.ids), each.finished) for each in found]


@pytest.mark.parametrize("seed", range(3))
def test_equals_window_translation(translator: Translator, seed: int) -> None:
    """With several searches at once, and prefixes with words that the vocabulary lacks."""
    chance = random.Random(seed)
    requests = [
        translator.request(divide=False),
        translator.request(beam=1, divide=False),
        translator.request(beam=4, nbest=3, length_penalty=0.6, divide=False),
        translator.request(prefix="ein Hund"),
        translator.request(prefix="ein Qxÿ"),
    ]
    words = " ".join(SOURCES).split()
    lines: list[TextRequest] = [
        (" ".join(chance.choices(words, k=chance.randint(1, 8))), chance.choice(requests)) for _ in range(40)
    ]
    lines = list(dict.fromkeys(lines))
    texts, asked = zip(*lines, strict=True)
    expected = dict(zip(lines, map(shown, translator.translate_window(texts, asked)), strict=True))
    batch, found = opened(translator), []
    try:
        for begin in range(0, len(lines), 5):
            assert batch.submit(lines[begin : begin + 5]) == []
            found += batch.completed(chance.choice([0, 0.01]))
        found += drain(batch)
    finally:
        batch.close()
    assert {line: shown(each) for line, each in found} == expected and len(found) == len(lines)


def test_only_plain_lines_are_accepted(translator: Translator) -> None:
    plain = (SOURCES[0], translator.request())
    others: list[TextRequest] = [
        ("  ", translator.request()),
        (SOURCES[1], translator.request(constraints=["Hund"])),
        (SOURCES[1], translator.request(glossary=Glossary.of({"dog": "Hund"}))),
        (SOURCES[1], translator.request(keep=["number"])),
        (SOURCES[1], translator.request(guard=True)),
        (SOURCES[1], translator.request(sampling=Sampling())),
        ("A dog. A man.", translator.request()),
        (SOURCES[1], translator.request(search={"coverage_penalty": 0.2})),
        (" ".join(SOURCES * 9), translator.request()),
    ]
    batch = opened(translator)
    try:
        assert batch.submit(others) == others, "none of them starts a session"
        assert batch.in_progress == 0 and batch.completed(0) == []
        assert batch.submit([others[0], plain, others[4]]) == [others[0], others[4]]
        assert [line for line, _ in drain(batch)] == [plain]
        assert batch.submit([plain, others[-1]]) == [others[-1]], "an open session refuses lines that are too long, too"
    finally:
        batch.close()


def test_an_invalid_line_leaves_all_lines_to_window_translation(translator: Translator) -> None:
    """A tag that the vocabulary lacks is reported by window translation."""
    plain = translator.request()
    wrong = type(plain)(plain.decoding, tags=("<2xx>",))
    lines = [(SOURCES[0], plain), (SOURCES[1], wrong)]
    batch = opened(translator)
    try:
        assert batch.submit(lines) == lines
    finally:
        batch.close()


def test_pytorch_has_no_continuous_batching(tmp_path: Path) -> None:
    write_tiny_model(tmp_path)
    assert Translator.load(tmp_path, engine="torch").continuous() is None
