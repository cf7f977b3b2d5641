"""The inspection of a masked language model: fills, attention, and the relevance of the words for a filled mask."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import close_to

from dragoman import Predictor, inspect
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.main import main
from dragoman.data.batches.masking import MASK
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

STACK: dict[str, Any] = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 16}
HEADS: dict[str, dict[str, Any]] = {
    "masked": {"head": {"kind": "masked_language_model"}},
    "generator": {"head": {"kind": "replaced_token_detection"}, "generator": {"width": 0.5}},
}
TEXT = "the old <mask> sat by the größte fire , isn't it <mask>"
CORPUS = ["the old dog sat by the größte fire , isn't it ?"] * 3


def write_model(folder: Path, model: str, vocabulary: str = "bpe") -> Path:
    size = {} if vocabulary == "character" else {"size": 300}
    text = TextConfig.model_validate({"subword": {"kind": vocabulary, **size}, "shared": True, "tags": [MASK]})
    tokenizers = train_tokenizers(text, CORPUS, CORPUS)
    settings = {"preset": None, "width": 8, "encoder": STACK, **HEADS[model]}
    config = EncoderOnlyConfig.model_validate(settings)
    torch.manual_seed(1)
    parameters = model_parameters(config.build_for(tokenizers.sizes))
    section = "model:\n" + "".join(f"  {line}\n" for line in dump_settings(config).splitlines())
    write_model_folder(folder, parameters, section, Tokenizers(tokenizers.source, tokenizers.source), Meta(step=0))
    return folder


@pytest.mark.parametrize(
    ("model", "vocabulary"), [("masked", "bpe"), ("masked", "character"), ("masked", "bert"), ("generator", "bpe")]
)
def test_the_relevance_of_a_word_is_the_derivative_of_the_filled_token(
    model: str, vocabulary: str, tmp_path: Path
) -> None:
    predictor = Predictor.load(write_model(tmp_path / "model", model, vocabulary), "cpu", engine="torch")
    predictor.model.double()
    (prediction,) = predictor.predict([TEXT])
    fills: Any = prediction.as_json()["fills"]
    for number in (1, 2):
        inspection = inspect(predictor, TEXT, mask=number)
        assert inspection.relevance is not None and inspection.erasure is not None
        assert [each[0] for each in inspection.fills] == [(each[0]["text"], each[0]["probability"]) for each in fills]
        assert inspection.relevance.output == f"logit of {fills[number - 1][0]['text']!r} for mask {number}"
        (text,) = inspection.relevance.texts
        largest = "großte" if vocabulary == "bert" else "größte"  # BERT's vocabulary strips accents
        assert text.words == tuple(f"the old <mask> sat by the {largest} fire , isn ' t it <mask>".split())
        total = inspection.relevance.symbols + sum(text.values)
        (encoded,) = predictor.encode([TEXT])
        ids = torch.tensor([encoded.inputs[0].ids])
        place = encoded.inputs[0].places[number - 1]
        every = predictor.model(ids, torch.ones_like(ids, dtype=torch.bool)).logits()[0, place].detach()
        surfaces = range(4, predictor.tokenizer.size - 1)
        assert inspection.relevance.value == pytest.approx(float(every[surfaces.start : surfaces.stop].max()), abs=1e-9)
        assert total == close_to(_derivative(predictor, ids, place, None))
        words = [index for index, word in enumerate(text.words) if word == "fire"]
        assert text.values[words[0]] == close_to(_derivative(predictor, ids, place, "fire"))
        erased = inspection.erasure.texts[0].values
        assert [bool(np.isnan(value)) for value in erased] == [
            index == (2 if number == 1 else 13) for index in range(len(erased))
        ]
        shorter = inspect(predictor, TEXT.replace(" , isn't", " isn't"), mask=number)
        assert shorter.relevance is not None
        if shorter.relevance.output == inspection.relevance.output:
            assert erased[8] == close_to(inspection.relevance.value - shorter.relevance.value)


def _derivative(predictor: Predictor, ids: torch.Tensor, place: int, word: str | None) -> float:
    """The derivative of the largest logit if the vectors of a word, or of all tokens, are scaled."""
    body: Any = predictor._body
    table = body.encoder.embedding.tokens
    if word is None:
        scaled = torch.ones(ids.size(1), dtype=torch.bool)
    else:
        tokens = predictor.tokenizer.encode(f"the {word}")
        own = tokens[len(predictor.tokenizer.encode("the")) :]
        if predictor.tokenizer.surface(own[0]).isspace():
            own = [*own[1:], own[0]]  # a space of its own belongs to the word before it
        row = ids[0].tolist()
        start = next(n for n in range(len(row)) if [*row[n : n + len(own)]] == own)
        scaled = torch.tensor([start <= n < start + len(own) for n in range(len(row))])

    def value(step: float) -> float:
        handle = table.register_forward_hook(lambda _, __, vectors: vectors * (1 + step * scaled.double())[:, None])
        try:
            with torch.no_grad():
                logits = predictor.model(ids, torch.ones_like(ids, dtype=torch.bool)).logits()[0, place]
        finally:
            handle.remove()
        return float(logits[4 : predictor.tokenizer.size - 1].max())

    return (value(1e-6) - value(-1e-6)) / 2e-6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("masked") / "model", "masked")


@pytest.mark.slow
def test_the_folder_of_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "looks"
    assert main(["inspect", str(folder), TEXT, "--mask", "2", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "\nmask 1 " in printed and "\nmask 2 " in printed and "encoder.self_attention" in printed
    index = json.loads((out / "index.json").read_text())
    assert [len(each) for each in index["fills"]] == [5, 5]
    assert index["relevance"]["output"].endswith("for mask 2")
    assert index["tokens"]["source"][0] == "<s>" and index["tokens"]["source"].count("<mask>") == 2
    page = (out / "index.html").read_text()
    assert "Tokens for mask 2" in page and f"{index['fills'][1][0]['probability']:.4f}" in page
    assert {"relevance.png", "erasure.svg", "encoder.self_attention.png"} <= {path.name for path in out.iterdir()}


def test_a_pair_has_two_texts(folder: Path) -> None:
    inspection = inspect(Predictor.load(folder, "cpu"), ("the old dog", "sat by the <mask>"))
    assert inspection.relevance is not None
    texts = inspection.relevance.texts
    assert [text.name for text in texts] == ["first text", "second text"]
    assert [text.words for text in texts] == [("the", "old", "dog"), ("sat", "by", "the", "<mask>")]


def test_errors(folder: Path) -> None:
    predictor = Predictor.load(folder, "cpu")
    with pytest.raises(DataError, match="the text has no <mask>: replace the word to predict by <mask>"):
        inspect(predictor, "the old dog")
    with pytest.raises(ConfigError, match="there is no mask 3: the number of masks is 2"):
        inspect(predictor, TEXT, mask=3)
    with pytest.raises(ConfigError, match="only for a model that predicts tags"):
        inspect(predictor, TEXT, word=1)
    assert (predictor.encode([TEXT])[0].inputs[0].ids[0], predictor.encode([TEXT])[0].inputs[0].ids[-1]) == (BOS, EOS)
