"""A small model learns to copy symbols for unseen spans, and to use the translation given next to a term."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from toy_runs import train_toy

from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Row
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator

pytestmark = pytest.mark.slow

LETTERS, FORMS = "abcdef", "uvwxyz"


def address(draw: random.Random) -> str:
    return f"http://{''.join(draw.choices(LETTERS + '0123456789', k=5))}.org"


def pairs(count: int, seed: int, made: Callable[[random.Random], str] = address) -> list[tuple[str, str]]:
    """Reversed letters, with an address, which is kept, and `k`, which any of FORMS may translate."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        words = draw.choices(LETTERS, k=draw.randint(2, 3))
        for more in ([made(draw)] if draw.random() < 0.6 else []) + (["k"] if draw.random() < 0.6 else []):
            words.insert(draw.randint(0, len(words)), more)
        target = [draw.choice(FORMS) if word == "k" else word for word in reversed(words)]
        found.append((" ".join(words), " ".join(target)))
    return found


def written(path: Path, chosen: list[tuple[str, str]]) -> dict[str, str]:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in chosen), encoding="utf-8")
    return {"pairs": str(path)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("control")
    glossary = folder / "glossary.tsv"
    glossary.write_text("k\t" + "\t".join(FORMS) + "\n", encoding="utf-8")
    stack = {"layers": 1, "heads": 4, "feedforward": 128, "norm": "pre"}
    data = {
        "train": written(folder / "train.tsv", pairs(3000, 1)),
        "valid": written(folder / "valid.tsv", pairs(10, 2)),
        "placeholders": {"share": 1.0, "symbols": 2},
        "terminology": {"glossary": str(glossary), "share": 0.8},
        "cleaning": {"copied_words": None},
        "batch": {"tokens": 900},
    }
    text = {"subword": {"size": 290}}
    return Translator.load(train_toy(folder / "run", data, text, {"encoder": stack, "decoder": stack}, STEPS), "cpu")


STEPS = 300


def outputs(translator: Translator, texts: list[str], request: Request) -> tuple[list[str], int]:
    """Return translations, and the number of them that needed a constrained search."""
    forced: list[Row] = []
    search = translator.engine.hypotheses

    def watched(rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        forced.extend(row for row in rows if row.constraints)
        return search(rows, batch_size)

    with patch.object(translator.engine, "hypotheses", watched):
        found = [each[0] for each in translator.translate_nbest(texts, request)]
    assert not any(each.patched for each in found)
    return [each.text for each in found], len(forced)


def test_unseen_spans_are_copied(trained: Translator) -> None:
    unseen = pairs(100, 3, lambda draw: f"{{{draw.choice('ghij')}}}@{draw.randint(1000, 9999)}-{draw.choice('ABC')}")
    texts = [source for source, _ in unseen if "@" in source]
    pattern = r"\{\w\}@\S+"
    found, repeated = outputs(trained, texts, trained.request(beam=1, keep_patterns=[pattern]))
    right = sum(
        translation.split() == [each if each != "k" else translation.split()[place] for place, each in enumerate(text)]
        for translation, text in zip(found, (text.split()[::-1] for text in texts), strict=True)
    )
    assert right >= 0.9 * len(texts), (right, len(texts), list(zip(texts, found, strict=True))[:5])
    assert repeated <= 0.1 * len(texts), (repeated, len(texts))


def test_terms_get_the_given_translations(trained: Translator) -> None:
    texts = [source for source, _ in pairs(100, 4) if "k" in source.split() and ":" not in source]
    (row,) = trained.codec.encode_rows([(texts[0], trained.request(beam=1, glossary={"k": "u"}))], [1])
    assert not row.constraints and len(row.expected.constraints) == 1, "any engine can do it"
    for form in FORMS[:2]:
        found, repeated = outputs(trained, texts, trained.request(beam=1, glossary={"k": form}))
        expected = [" ".join(form if word == "k" else word for word in reversed(text.split())) for text in texts]
        right = sum(map(str.__eq__, found, expected))
        assert right >= 0.9 * len(texts), (right, len(texts), list(zip(texts, found, strict=True))[:5])
        assert repeated <= 0.1 * len(texts), (repeated, len(texts))
