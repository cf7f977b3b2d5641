"""Drawings of trees: as text, and as SVG."""

import io
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from dragoman import inspect
from dragoman.base.errors import ConfigError, DataError
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.figures.constituency_tree import draw_trees
from dragoman.figures.text_layout import text_width
from dragoman.inference.prediction.outputs import compute_outputs
from dragoman.inference.prediction.predict import predict
from dragoman.inference.prediction.predictor import Predictor
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.nn.attention.recording import recording
from dragoman.text.tokenizers import VocabularySizes
from dragoman.text.trees.brackets import parse_tree
from dragoman.text.trees.linearization import linearise
from dragoman.text.trees.tree import draw_tree
from dragoman.text.vocabularies.whitespace import WhitespaceTokenizer

TREE = parse_tree("(S (NP (NP (DT The) (NN end)) (PP (IN of) (NP (NN a<b)))) (VP (VBD came)) (. .))")
TEXT = """\
S
├─ NP
│  ├─ NP
│  │  ├─ DT The
│  │  └─ NN end
│  └─ PP
│     ├─ IN of
│     └─ NP
│        └─ NN a<b
├─ VP
│  └─ VBD came
└─ . ."""


def test_a_tree_is_drawn_as_text() -> None:
    assert draw_tree(TREE) == TEXT
    assert draw_tree(parse_tree("(S (NN a)) (NN b)")) == "S\n└─ NN a\nNN b"
    assert draw_tree(parse_tree("")) == ""


def test_a_picture_shows_every_label_above_the_middle_of_its_parts(tmp_path: Path) -> None:
    draw_trees([TREE, parse_tree("(NN x)")], tmp_path / "trees.svg")
    root = ElementTree.parse(tmp_path / "trees.svg").getroot()
    groups = root.findall("{*}g")
    texts = [(each.text, float(each.attrib["x"]), float(each.attrib["y"])) for each in groups[0].findall("{*}text")]
    assert sorted(str(text) for text, *_ in texts) == sorted(re.findall(r"[^\s()]+", str(TREE)))
    places = {text: (x, y) for text, x, y in texts}
    assert places["VP"][0] == places["came"][0]
    assert places["PP"][0] == pytest.approx((places["of"][0] + places["a<b"][0]) / 2)
    assert places["S"][1] < places["VP"][1] < places["came"][1] == places["The"][1]
    assert len(groups[0].findall("{*}path")) == len(TREE.constituents) + len(TREE.words) - 1
    assert all(0 < x < float(root.attrib["width"]) for _, x, _ in texts)
    (top,) = re.findall(r"translate\(0 ([\d.]+)\)", groups[1].attrib["transform"])
    assert max(y for *_, y in texts) < float(top) < float(root.attrib["height"])


def test_the_lines_of_different_constituents_do_not_cross_and_labels_do_not_overlap(tmp_path: Path) -> None:
    text = (
        "(S (NP (NP (NNP Pierre)) (, ,) (ADJP (NP (CD 61) (NNS years)) (JJ old)) (, ,)) (VP (MD will) (VP (VB join) "
        "(NP (DT the) (NN board)) (ADVP-LONG-LABEL (RB i)) (QP-LONG-LABEL (CD i)))) (. .))"
    )
    draw_trees([parse_tree(text)], tmp_path / "tree.svg")
    root = ElementTree.parse(tmp_path / "tree.svg").getroot()
    number = r"(-?[\d.]+)"
    paths = [
        tuple(map(float, re.fullmatch(rf"M{number} {number}V{number}H{number}V{number}", each.attrib["d"]).groups()))  # type: ignore[union-attr]
        for each in root.iter("{http://www.w3.org/2000/svg}path")
    ]
    for parent, _, bar, child, _ in paths:
        low, high = sorted((parent, child))
        for other, top, _, place, end in paths:
            if (other, top) != (parent, bar - 8):
                assert not (low < place < high and top < bar < end)
    rows: dict[float, list[tuple[float, float]]] = {}
    for each in root.iter("{http://www.w3.org/2000/svg}text"):
        half = 72 * text_width(each.text or "", 13) / 2
        x = float(each.attrib["x"])
        rows.setdefault(float(each.attrib["y"]), []).append((x - half, x + half))
    for row in rows.values():
        assert all(left < right for (_, left), (right, _) in pairwise(sorted(row)))


@pytest.fixture(scope="module")
def parser() -> Predictor:
    torch.manual_seed(1)
    settings = {
        "preset": None,
        "width": 8,
        "encoder": {"kind": "mean"},
        "head": {
            "kind": "chart",
            "labels": ["NP", "S VP"],
            "tags": [".", "NN"],
            "punctuation": {".": ["."]},
            "hidden": 4,
        },
    }
    config = EncoderOnlyConfig.model_validate(settings)
    tokenizer = WhitespaceTokenizer(["a", "b", "."])
    model = config.build_for(VocabularySizes(tokenizer.size, tokenizer.size))
    return Predictor(model, tokenizer, config.head)


def test_trees_are_written_in_every_format(parser: Predictor, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a b .\n\nb\n")
    trees = [str(each.tree) for each in parser.predict(["a b .", "", "b"])]  # type: ignore[attr-defined]
    outputs = {}
    for name in ("auto", "trees", "drawing", "jsonl"):
        file = io.StringIO()
        settings = {"draw": tmp_path / "trees.svg"} if name == "auto" else {}
        assert predict(parser, tmp_path / "texts.txt", file, format=name, quiet=True, **settings) == 3  # type: ignore[arg-type]
        outputs[name] = file.getvalue()
    assert outputs["auto"] == outputs["trees"] == "".join(f"{tree}\n" for tree in trees)
    assert outputs["drawing"].startswith(draw_tree(parse_tree(trees[0])))
    assert f'"tree": "{trees[2]}"' in outputs["jsonl"]
    assert (tmp_path / "trees.svg").read_text().count("<g ") == 2


def test_what_cannot_be_drawn_is_refused(parser: Predictor, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a\n")
    with pytest.raises(ConfigError, match=r"an SVG file, not .*name it trees\.svg"):
        predict(parser, tmp_path / "texts.txt", io.StringIO(), draw=tmp_path / "trees.png", quiet=True)
    with pytest.raises(ConfigError, match="the format conll does not fit the model"):
        predict(parser, tmp_path / "texts.txt", io.StringIO(), format="conll", quiet=True)
    with pytest.raises(DataError, match="the sentence is blank"):
        inspect(parser, " ")


def parser_with_attention(head: dict[str, object]) -> Predictor:
    torch.manual_seed(2)
    layer = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 8}
    settings = {"preset": None, "width": 8, "encoder": layer, "head": {"labels": ["NP", "S"], "tags": ["NN"], **head}}
    config = EncoderOnlyConfig.model_validate(settings)
    tokenizer = WhitespaceTokenizer(["a", "b"]).with_tags(["wsj"])
    return Predictor(config.build_for(VocabularySizes(tokenizer.size, tokenizer.size)), tokenizer, config.head)


@pytest.mark.slow
def test_the_inspection_of_a_decoder_of_trees_has_its_weights_over_words_and_symbols(tmp_path: Path) -> None:
    decoder = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 8}
    predictor = parser_with_attention({"kind": "tree_decoder", "decoder": decoder, "beam": 1})
    sentence = ParsedSentence(("a", "b", "a"), tag="wsj")
    inspection = inspect(predictor, sentence)
    (prediction,) = predictor.predict([sentence])
    assert inspection.tree == prediction.tree  # type: ignore[attr-defined]
    assert inspection.source == "a b a" and inspection.target == str(inspection.tree)
    symbols = linearise(inspection.tree)  # type: ignore[arg-type]
    tokens = ("<wsj>", "a", "b", "a", "</s>")
    maps = {each.name: each for each in inspection.maps}
    assert [(name, each.weights.shape[1:]) for name, each in maps.items()] == [
        ("encoder.layers.0.self_attention", (6, 6)),
        ("encoder.layers.1.self_attention", (6, 6)),
        ("decoder.layers.0.self_attention", (len(symbols) + 1,) * 2),
        ("decoder.layers.0.cross_attention", (len(symbols) + 1, 6)),
    ]
    assert maps["encoder.layers.0.self_attention"].keys[1:] == tokens
    assert maps["decoder.layers.0.cross_attention"].queries == (*symbols, "</s>")
    assert maps["decoder.layers.0.self_attention"].keys == ("<s>", *symbols)
    for each in maps.values():
        assert np.allclose(each.weights.sum(-1), 1, atol=1e-5)
    assert not np.triu(maps["decoder.layers.0.self_attention"].mean, 1).any()
    expected = recorded_in_search(predictor, sentence)
    assert np.allclose(maps["decoder.layers.0.cross_attention"].weights, expected, atol=1e-5)
    files = {path.name for path in inspection.save(tmp_path / "weights")}
    assert {"tree.svg", "decoder.cross_attention.png", "encoder.self_attention.layer-2.svg"} <= files
    assert '<img src="tree.svg"' in (tmp_path / "weights/index.html").read_text()
    assert (tmp_path / "weights/tree.svg").read_text().count("<text") == 2 * 3 + len(inspection.tree.constituents)  # type: ignore[union-attr]


def recorded_in_search(predictor: Predictor, sentence: ParsedSentence) -> np.ndarray:
    """The weights (heads, T, S) over the sentence of a greedy search, one symbol at a time."""
    (encoded,) = predictor.encode([sentence])
    (attention,) = [each for name, each in predictor.model.named_modules() if name.endswith("0.cross_attention")]
    with torch.inference_mode(), recording() as recorded:
        compute_outputs(predictor.model, encoded.inputs, torch.device("cpu"))
    return torch.cat(recorded[attention], 2)[0].numpy()


def test_the_inspection_of_a_parser_without_weights_says_so(parser: Predictor, tmp_path: Path) -> None:
    inspection = inspect(parser, "a b .")
    assert inspection.maps == () and inspection.tree is not None
    assert inspection.absent == ("encoder.self_attention: the encoder does not have this kind of attention",)
    assert {path.name for path in inspection.save(tmp_path / "out")} == {
        "attention.npz",
        "index.html",
        "index.json",
        "tree.svg",
    }
