"""The readers of labelled corpora on real files: every split has its published number of examples and labels."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import LabelledCorpusConfig, QuestionCorpusConfig, TaggedCorpusConfig
from dragoman.data.labelled.examples import LabelledText
from dragoman.data.labelled.read import read_labelled, read_questions, read_tagged

pytestmark = pytest.mark.skipif(
    "DRAGOMAN_DATA" not in os.environ, reason="DRAGOMAN_DATA does not name a folder of corpora"
)
ROOT = Path(os.environ.get("DRAGOMAN_DATA", "."))


def texts(name: str, **settings: Any) -> list[LabelledText]:
    return read_labelled(LabelledCorpusConfig(path=ROOT / name, **settings))


def labels(examples: list[LabelledText]) -> dict[str | None, int]:
    return dict(Counter(example.label for example in examples))


@pytest.mark.parametrize(("split", "count"), [("train", 6_920), ("dev", 872), ("test", 1_821)])
def test_sst2(split: str, count: int) -> None:
    examples = texts(f"sst2/{split}.tsv.gz")
    assert len(examples) == count
    assert labels(examples).keys() == {"0", "1"}


@pytest.mark.parametrize(
    ("split", "count", "acceptable"),
    [("in_domain_train", 8_551, 70.4), ("in_domain_dev", 527, 69.3), ("out_of_domain_dev", 516, 68.6)],
)
def test_cola(split: str, count: int, acceptable: float) -> None:
    examples = texts(f"cola/{split}.tsv.gz")
    assert len(examples) == count
    assert round(100 * labels(examples)["1"] / count, 1) == acceptable


@pytest.mark.parametrize(("split", "count"), [("train", 5_749), ("dev", 1_500), ("test", 1_379)])
def test_stsb(split: str, count: int) -> None:
    examples = texts(f"stsb/{split}.csv.gz")
    assert len(examples) == count
    assert all(len(example.texts) == 2 and 0 <= float(example.label or "nan") <= 5 for example in examples)
    assert any('"' in example.texts[0] for example in examples)


def test_sick_has_two_labels() -> None:
    with pytest.raises(DataError, match="relatedness_score and entailment_judgment"):
        texts("sick/trial.tsv.gz")
    for split, count in (("train", 4_500), ("trial", 500), ("test", 4_927)):
        examples = texts(f"sick/{split}.tsv.gz", columns={"label": "entailment_judgment"})
        assert len(examples) == count
    assert round(100 * labels(examples)["NEUTRAL"] / len(examples), 1) == 56.7
    assert all(
        1 <= float(example.label or "nan") <= 5
        for example in texts("sick/trial.tsv.gz", columns={"label": "relatedness_score"})
    )


def test_trec() -> None:
    assert [len(texts(f"trec/{split}.txt.gz")) for split in ("train", "test")] == [5_452, 500]
    assert len(labels(texts("trec/train.txt.gz"))) == 6
    assert len(labels(texts("trec/train.txt.gz", level="fine"))) == 50


def test_rte() -> None:
    counts = {f"rte{number}_{split}": 800 for number in (1, 2, 3) for split in ("dev", "test")}
    counts |= {"rte1_dev": 567, "rte2_dev": 400}
    renamed = {"TRUE": "entailment", "YES": "entailment", "FALSE": "none", "NO": "none"}
    for name, count in counts.items():
        examples = texts(f"rte/rte.zip/rte/{name}.xml", labels=renamed)
        assert len(examples) == count
        assert labels(examples).keys() == {"entailment", "none"}


def test_superglue() -> None:
    counts = {"BoolQ": 32, "CB": 32, "COPA": 64, "MultiRC": 154, "RTE": 32, "ReCoRD": 397, "WSC": 32, "WiC": 32}
    for name, count in counts.items():
        examples = texts(f"superglue-32/{name}.jsonl.gz")
        assert len(examples) == count
        assert len({example.id for example in examples}) == count
    assert labels(texts("superglue-32/CB.jsonl.gz")) == {"entailment": 19, "contradiction": 10, "neutral": 3}


def test_conll2000_and_wnut17() -> None:
    path = ROOT / "conll2000" / "conll2000.zip" / "conll2000" / "test.txt"
    sentences = read_tagged(TaggedCorpusConfig(path=path, features=(2,)))
    assert len(sentences) == 2_012
    assert sum(len(sentence.words) for sentence in sentences) == 47_377
    for split, count, entities in (("train", 3_394, 1_975), ("dev", 1_009, 836), ("test", 1_287, 1_079)):
        sentences = read_tagged(TaggedCorpusConfig(path=ROOT / "wnut17" / f"{split}.conll.gz"))
        assert len(sentences) == count
        assert sum(tag.startswith("B-") for sentence in sentences for tag in sentence.tags or ()) == entities


def test_qamr_and_xquad(capsys: pytest.CaptureFixture[str]) -> None:
    for name, count, contexts in (
        ("qamr/dev", 6_020, 149),
        ("xquad/xquad.en", 1_190, 240),
        ("xquad/xquad.de", 1_190, 240),
    ):
        questions = read_questions(QuestionCorpusConfig(path=ROOT / f"{name}.json.gz"))
        assert len(questions) == count
        assert len({question.context for question in questions}) == contexts
        for question in questions:
            assert 1 <= len(question.answers) <= 3
            assert all(question.context.startswith(answer.text, answer.start) for answer in question.answers)
    assert not capsys.readouterr().err
