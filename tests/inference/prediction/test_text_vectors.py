"""Vectors of texts: `Predictor.vectors`, `predict --vectors`, `evaluate labels --vectors`."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import assert_close, close_to

from dragoman import Predictor, evaluate_labels, predict
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.main import main
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.bert import BertWordPieceConfig

TEXTS = ["the dog runs", "", "a cat", "the dog runs over the green grass and the cat sleeps"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without a head."""
    tokenizer = BertWordPieceConfig(size=80).learn(TEXTS * 3)
    section = {"preset": "tiny", "width": 16, "encoder": {"heads": 2, "layers": 1}, "head": {"kind": "none"}}
    config = EncoderOnlyConfig.model_validate({**section, "positions": {"kind": "learned", "limit": 16}})
    torch.manual_seed(1)
    tokenizers = Tokenizers(tokenizer, tokenizer)
    path = tmp_path_factory.mktemp("vectors") / "body"
    settings = "model:\n" + "".join(f"  {line}\n" for line in dump_settings(config).splitlines())
    write_model_folder(path, model_parameters(config.build_for(tokenizers.sizes)), settings, tokenizers, Meta(step=0))
    return path


@pytest.fixture(scope="module")
def predictor(folder: Path) -> Predictor:
    return Predictor.load(folder)


def test_a_vector_is_the_normalised_mean_of_the_states(predictor: Predictor) -> None:
    vectors = predictor.vectors(TEXTS[:3])
    assert vectors.dtype == np.float32 and vectors.shape == (3, 16)
    for text, vector in zip(TEXTS, vectors, strict=False):
        ids = torch.tensor([[BOS, *predictor.tokenizer.encode(text), EOS]])
        with torch.no_grad():
            states = predictor.model.encode(ids, torch.ones_like(ids, dtype=torch.bool)).states[0]
        mean = states.mean(0)
        assert_close(vector, (mean / mean.norm()).numpy())


def test_vectors_do_not_depend_on_the_other_texts(predictor: Predictor) -> None:
    together = predictor.vectors(TEXTS * 3)
    for batch_tokens in (1, 20):
        assert_close(predictor.vectors(TEXTS * 3, batch_tokens=batch_tokens), together)
    assert_close(predictor.vectors("a cat"), together[2:3])
    assert predictor.vectors([]).shape == (0, 16)
    pair = predictor.vectors([("the dog", "runs")])
    assert not np.allclose(pair, predictor.vectors(["the dog runs"]), atol=1e-3)


def test_a_long_text_is_cut_and_reported(predictor: Predictor, capfd: pytest.CaptureFixture[str]) -> None:
    assert np.isfinite(predictor.vectors(["a cat", "cat " * 30])).all()
    assert "text 2 longer than the model's 16 tokens: 16 tokens" in capfd.readouterr().err


def test_a_body_predicts_no_labels(predictor: Predictor, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="no head, so it predicts no labels: train one with train.start"):
        predictor.predict(TEXTS)
    (folder.parent / "texts.txt").write_text("a cat\n")
    assert main(["predict", str(folder), "--input", str(folder.parent / "texts.txt")]) == 2
    assert "predicts no labels" in capfd.readouterr().err


@pytest.mark.parametrize("text", [5, ("a", "b", "c"), ("a", 5), {"text": "a"}])
def test_texts_of_another_form_are_rejected(predictor: Predictor, text: object) -> None:
    with pytest.raises(ConfigError, match="text 2: expected a text or a pair"):
        predictor.vectors(["a", text])  # type: ignore[list-item]


def test_files_of_vectors(predictor: Predictor, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    lines = io.StringIO()
    assert predict(predictor, tmp_path / "texts.txt", lines, vectors=True) == 4
    rows = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    expected = predictor.vectors(TEXTS)
    assert_close([row["vector"] for row in rows], expected)
    output = tmp_path / "vectors.npy"
    command = ["predict", str(folder), "--vectors", "--input", str(tmp_path / "texts.txt"), "--output", str(output)]
    assert main(command) == 0
    array = np.load(output)
    assert array.dtype == np.float32
    assert_close(array, expected)
    with pytest.raises(ConfigError, match="cannot be written in the format tsv"):
        predict(predictor, tmp_path / "texts.txt", lines, vectors=True, format="tsv")


def test_similarities_are_correlated_with_labels(
    predictor: Predictor, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pairs = [("a cat", "a cat", 5), ("a cat", "the dog runs", 1), ("the dog", "the dog runs", 4), ("grass", "a cat", 2)]
    test = tmp_path / "pairs.csv"
    test.write_text("".join(f"{one},{other},{score}\n" for one, other, score in pairs))
    report = evaluate_labels(predictor, test, vectors=True).reports[0]
    first, second = (predictor.vectors([pair[side] for pair in pairs]) for side in (0, 1))
    expected = np.corrcoef((first * second).sum(1), [score for *_, score in pairs])[0, 1]
    measures = {score.key: score.value for score in report.scores}
    assert measures["pearson"] == close_to(expected)
    assert measures.keys() == {"pearson", "spearman"} and report.baseline is None
    assert main(["evaluate", "labels", str(folder), "--test", str(test), "--vectors"]) == 0
    assert "Spearman" in capfd.readouterr().out
    assert main(["evaluate", "labels", str(folder), "--test", str(test), "--vectors", "--compare", str(folder)]) == 0
    assert "p = " in capfd.readouterr().out
    (tmp_path / "single.tsv").write_text("a cat\t5\n")
    with pytest.raises(DataError, match="need pairs of texts"):
        evaluate_labels(predictor, tmp_path / "single.tsv", vectors=True)
