"""Drawings of trees: as text, and as SVG."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.inspect.pictures.tree import draw_trees
from dragoman.models.encoder_only import EncoderOnlyConfig
from dragoman.prediction.predict import predict
from dragoman.prediction.predictor import Predictor
from dragoman.text.tokenizers import VocabularySizes
from dragoman.text.trees.brackets import parse_tree
from dragoman.text.trees.drawing import draw_tree
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


def test_a_picture_shows_every_label_above_the_middle_of_its_words(tmp_path: Path) -> None:
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


def test_what_cannot_be_drawn_or_explained_is_refused(parser: Predictor, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a\n")
    with pytest.raises(ConfigError, match=r"an SVG file, not .*name it trees\.svg"):
        predict(parser, tmp_path / "texts.txt", io.StringIO(), draw=tmp_path / "trees.png", quiet=True)
    with pytest.raises(ConfigError, match="the format conll does not fit the model"):
        predict(parser, tmp_path / "texts.txt", io.StringIO(), format="conll", quiet=True)
    with pytest.raises(ModelError, match="cannot be explained"):
        parser.inspect("a")
