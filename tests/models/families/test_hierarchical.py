"""Hierarchical attention: division into sentences, both levels against their formulas, and a planted sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman import Predictor, inspect, train
from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.cli.main import main
from dragoman.inference.prediction.heads.classification import ClassPrediction, divide_into_sentences
from dragoman.inference.prediction.heads.inputs import join_sentences
from dragoman.models.families.hierarchical import HierarchicalEncoder, Pooling
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.nn.attention.scorers import Additive, AdditiveConfig
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizers import VocabularySizes

SIZE = 30


def model(sentence_length: int = 64) -> EncoderOnly:
    torch.manual_seed(2)
    settings = {
        "preset": None,
        "width": 6,
        "encoder": {"kind": "hierarchical", "sentence_length": sentence_length},
        "head": {"kind": "classification", "labels": ["a", "b"]},
    }
    built = EncoderOnlyConfig.model_validate(settings).build_for(VocabularySizes(SIZE, SIZE))
    return built.double().eval()


def document(sentences: list[list[int]]) -> list[int]:
    return [BOS, *(token for sentence in sentences for token in (*sentence, EOS))]


def padded(documents: list[list[int]]) -> tuple[Tensor, Tensor]:
    size = max(map(len, documents))
    tokens = torch.tensor([[*each, *[PAD] * (size - len(each))] for each in documents])
    mask = torch.tensor([[True] * len(each) + [False] * (size - len(each)) for each in documents])
    return tokens, mask


def expected_chunks(tokens: list[int], length: int) -> list[list[int]]:
    """Divide a document one token at a time."""
    chunks: list[list[int]] = [[]]
    for token in tokens:
        if chunks[-1] and (chunks[-1][-1] == EOS or len(chunks[-1]) == length):
            chunks.append([])
        chunks[-1].append(token)
    return chunks


@pytest.mark.parametrize("length", [2, 3, 64])
def test_documents_are_divided_into_sentences(length: int) -> None:
    draw = np.random.default_rng(1)
    documents = [
        document([draw.integers(5, SIZE, draw.integers(0, 6)).tolist() for _ in range(count)]) for count in (1, 5, 3)
    ]
    encoder = model(length).encoder
    assert isinstance(encoder, HierarchicalEncoder)
    tokens, mask = padded(documents)
    found = encoder.divide(tokens, mask)
    chunks = [expected_chunks(each, length) for each in documents]
    for row, own in enumerate(chunks):
        assert found.present[row].sum() == len(own)
        for number, chunk in enumerate(own):
            place = int(found.rows[row, number])
            assert found.tokens[place][found.mask[place]].tolist() == chunk
            places = found.positions[place][found.mask[place]]
            assert tokens.flatten()[places].tolist() == chunk
    assert len(found.tokens) == sum(map(len, chunks))


def test_a_document_does_not_depend_on_its_batch() -> None:
    built = model(4)
    documents = [document([[5, 6], [7, 8, 9, 10, 11]]), document([[12]]), document([[5], [6], [7, 20], [8]])]
    together = built(*padded(documents))
    alone = torch.cat([built(*padded([each])) for each in documents])
    torch.testing.assert_close(together, alone)


def test_both_levels_equal_their_formulas() -> None:
    built = model()
    encoder = built.encoder
    assert isinstance(encoder, HierarchicalEncoder)
    sentences = [[BOS, 5, 6, 7, EOS], [8, 9, EOS], [10, EOS]]
    vectors = []
    for sentence in sentences:
        tokens = torch.tensor([sentence])
        states = encoder.words(tokens, torch.ones_like(tokens, dtype=torch.bool)).states[0]
        vectors.append(by_hand(encoder.word_pooling, states))
    stacked = torch.stack(vectors)[None]
    assert encoder.sentences is not None
    states = encoder.sentences(stacked, torch.ones(1, 3, dtype=torch.bool)).states[0]
    expected = by_hand(encoder.sentence_pooling, states)
    flat = [token for sentence in sentences for token in sentence]
    torch.testing.assert_close(built.encode(*padded([flat])).summary[0], expected)


def by_hand(pooling: Pooling, states: Tensor) -> Tensor:
    """Σ α_i h_i with α = softmax of wᵀtanh(Vh_i + b), where b = Uq of the learned query (equations 5 to 7)."""
    scorer = pooling.attention.scorer
    assert isinstance(scorer, Additive)
    bias = pooling.query[0, 0] @ scorer.query[0]
    scores = torch.stack([torch.tanh(state @ scorer.key[0] + bias) @ scorer.vector[0] for state in states])
    weights = torch.exp(scores) / torch.exp(scores).sum()
    return (weights[:, None] * states).sum(0)


def test_sentences_contain_the_whole_text() -> None:
    text = "  It was fine. 10/10!!\n\n- And more?   Yes. ...  "
    sentences = divide_into_sentences(text, "en")
    assert "".join(sentences) == text and len(sentences) >= 3
    assert divide_into_sentences("", "en") == [""]


def test_documents_are_cut_at_their_end() -> None:
    whole = join_sentences([[5, 6], [], [7, 8, 9]], None)
    assert whole.ids == (BOS, 5, 6, EOS, 7, 8, 9, EOS) and whole.cut == 0
    cut = join_sentences([[5, 6], [7, 8, 9]], 6)
    assert cut.ids == (BOS, 5, 6, EOS, 7, EOS) and cut.cut == 2
    assert join_sentences([[]], 8).ids == (BOS, EOS)


FILLER = "the film new scene that and some actor plot music story camera night city long day".split()


def write_documents(path: Path, count: int, seed: int) -> list[int]:
    """Write documents in which one sentence decides; the other sentences contain its words, but not its verdict."""
    draw = np.random.default_rng(seed)
    planted = []
    with path.open("w") as file:
        for number in range(count):
            sentences = [" ".join(draw.choice(FILLER, draw.integers(3, 7))) for _ in range(draw.integers(4, 8))]
            label = ("neg", "pos")[int(draw.integers(2))]
            place = int(draw.integers(len(sentences)))
            verdict = {"pos": ["superb", "great", "lovely"], "neg": ["dull", "awful", "weak"]}[label]
            words = sentences[place].split()
            words.insert(int(draw.integers(len(words) + 1)), str(draw.choice(verdict)))
            sentences[place] = " ".join(words)
            text = " ".join(f"{sentence.capitalize()}." for sentence in sentences)
            file.write(json.dumps({"id": str(number), "label": label, "text": text}) + "\n")
            planted.append(place)
    return planted


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    write_documents(folder / "train.jsonl", 400, 1)
    write_documents(folder / "valid.jsonl", 40, 2)
    settings: dict[str, Any] = {
        "task": {"kind": "classification"},
        "data": {
            "train": str(folder / "train.jsonl"),
            "valid": str(folder / "valid.jsonl"),
            "batch": {"tokens": 2048},
        },
        "text": {"subword": {"kind": "word"}},
        "model": {"preset": None, "width": 16, "dropout": 0.0, "encoder": {"kind": "hierarchical", "sentences": None}},
        "train": {
            "max_steps": 70,
            "device": "cpu",
            "precision": "float32",
            "threads": 1,
            "schedule": {"kind": "cosine", "peak": 0.02},
        },
        "out": str(folder / "run"),
    }
    train(settings, quiet=True)
    return folder


def test_a_planted_decisive_sentence_has_the_largest_weight(trained: Path) -> None:
    planted = write_documents(trained / "test.jsonl", 60, 3)
    predictor = Predictor.load(trained / "run", "cpu")
    lines = [json.loads(line) for line in (trained / "test.jsonl").read_text().splitlines()]
    predictions: list[ClassPrediction] = predictor.predict([line["text"] for line in lines])
    right = sum(each.label == line["label"] for each, line in zip(predictions, lines, strict=True))
    assert right >= 0.95 * len(lines)
    top = word_top = 0
    for line, place in zip(lines, planted, strict=True):
        inspected = inspect(predictor, line["text"]).document
        assert sum(each.weight for each in inspected) == pytest.approx(1, abs=1e-5)
        best = int(np.argmax([each.weight for each in inspected]))
        top += best == place and len(inspected) == line["text"].count(".")
        word_top += inspected[best].words[int(np.argmax(inspected[best].values))].lower() not in {*FILLER, "."}
    assert top >= 0.95 * len(lines)
    assert word_top >= 0.8 * len(lines)


def test_weights_are_drawn_on_the_text(trained: Path) -> None:
    out = trained / "inspection"
    text = "The plot that new city. The actor superb and long. Some night."
    assert main(["inspect", str(trained / "run"), text, "--out", str(out)]) == 0
    svg = (out / "document.svg").read_text()
    assert "predicted: pos" in svg and ">superb<" in svg and ">city<" in svg
    index = json.loads((out / "index.json").read_text())
    assert [len(each["words"]) for each in index["document"]] == [6, 6, 3]
    with np.load(out / "attention.npz") as arrays:
        assert arrays["sentences"].shape == (3,) and arrays["words.1"].tolist()[2] == "superb"


def test_pairs_and_heads_of_tokens_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="trained on single texts"):
        Predictor.load(trained / "run", "cpu").predict([("a", "b")])
    for head, message in (
        ({"kind": "tagging"}, "a head of kind tagging reads the states of tokens"),
        ({"kind": "classification", "pair": "separate"}, "not pairs of texts"),
    ):
        settings = {"encoder": {"kind": "hierarchical"}, "head": head}
        with pytest.raises(ConfigError, match=message):
            load_settings(settings, [], EncoderOnlyConfig)
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tlabel\na\tb\tyes\nc\td\tno\n")
    settings = {
        "task": {"kind": "classification"},
        "data": {"train": str(tmp_path / "pairs.tsv"), "valid": str(tmp_path / "pairs.tsv")},
        "model": {"preset": None, "width": 4, "encoder": {"kind": "hierarchical"}},
        "train": {"max_steps": 1, "device": "cpu"},
        "out": str(tmp_path / "run"),
    }
    with pytest.raises(ConfigError, match="an example is a pair of texts"):
        train(settings, quiet=True)


def test_any_scorer_pools() -> None:
    pooling = Pooling(4, AdditiveConfig(width=3), 0.0)
    mask = torch.tensor([[True, True, False]])
    states = torch.randn(1, 3, 4)
    torch.testing.assert_close(pooling(states, mask), pooling(states[:, :2], mask[:, :2]))
