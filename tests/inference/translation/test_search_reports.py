"""Log-probabilities of tokens and search trees, on the command line and in Python."""

import gzip
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from closeness import close_to
from tiny_model import write_tiny_model

from dragoman.base.errors import ConfigError
from dragoman.cli.main import main
from dragoman.inference.translation.files.translate_file import translate_file
from dragoman.inference.translation.translator import Sampling, Translator

TEXT = ["a dog runs .", "", "the man sees a dog in the park .", " ", "two dogs sleep ."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("printed")
    write_tiny_model(path / "model")
    (path / "in").write_text("".join(line + "\n" for line in TEXT))
    return path


def printed(folder: Path, *options: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    settings = ["search.length_factor=1", "search.length_margin=4"]
    assert main(["translate", str(folder / "model"), "-i", str(folder / "in"), *options, *settings]) == 0
    return capfd.readouterr().out.removesuffix("\n").split("\n")


@pytest.mark.parametrize("sample", [[], ["--sample", "--seed", "3"]])
def test_tokens_and_their_log_probabilities_follow_the_text(
    folder: Path, sample: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    plain = printed(folder, "--scores", *sample, capfd=capfd)
    rows = [line.split("\t") for line in printed(folder, "--scores", "--token-scores", *sample, capfd=capfd)]
    assert len(rows) == len(TEXT) and {len(row) for row in rows} == {4}
    for line, text, (total, written, pieces, scores) in zip(plain, TEXT, rows, strict=True):
        before = line.split("\t")  # of another engine, which rounds differently
        assert (float(before[0]), before[1]) == (pytest.approx(float(total), abs=1e-4), written)
        assert len(pieces.split()) == len(scores.split())
        assert bool(pieces) == bool(text.strip())
        assert sum(map(float, scores.split())) == pytest.approx(float(total), abs=1e-4)
    lists = [line.split(" ||| ") for line in printed(folder, "--nbest", "3", "--token-scores", *sample, capfd=capfd)]
    assert {len(row) for row in lists} == {5}
    assert [len(list(rows)) for _, rows in groupby(lists, lambda row: row[0])] == [3, 1, 3, 1, 3]
    assert all(len(row[3].split()) == len(row[4].split()) for row in lists)


def test_log_probabilities_in_python_equal_those_of_scoring(folder: Path) -> None:
    translator = Translator.load(folder / "model", "cpu")
    request = translator.request(nbest=4, search={"token_scores": True, "length_margin": 4})
    for text, found in zip(TEXT, translator.translate_nbest(TEXT, request), strict=True):
        for each in found:
            if not text.strip():
                assert each.token_log_probabilities == ()
                continue
            assert len(each.token_log_probabilities) == len(each.tokens) + each.finished
            assert sum(each.token_log_probabilities) == pytest.approx(each.log_probability, abs=1e-4)
    assert not any(each[0].token_log_probabilities for each in translator.translate_nbest(TEXT))
    drawn = translator.sample(TEXT[:1], Sampling.of(samples=2, settings={"token_scores": True, "maximum_length": 3}))[0]
    for each in drawn:
        assert len(each.token_log_probabilities) == len(each.tokens) + each.finished <= 3


def read_nbest(tree: dict[str, Any]) -> list[tuple[str, float]]:
    """Read the n-best list as described in docs/reference/search-tree.md."""
    ends = [node for node in tree["nodes"] if node["fate"] == "finished" or node["fate"].startswith("unfinished")]
    ends.sort(key=lambda node: (node["fate"] != "finished", -node["score"]))

    def pieces(node: dict[str, Any]) -> list[str]:
        before = [] if node["parent"] is None else pieces(tree["nodes"][node["parent"]])
        return before if node["piece"] is None else [*before, node["piece"]]

    return [(pieces(node), node["score"]) for node in ends]


@pytest.mark.parametrize("name", ["tree.json", "tree.jsonl.gz"])
def test_trees_are_one_object_per_line(folder: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    plain = printed(folder, "--nbest", "3", "--token-scores", capfd=capfd)
    found = printed(folder, "--nbest", "3", "--token-scores", "--tree", str(folder / name), capfd=capfd)
    assert [line.split(" ||| ")[:2] for line in found] == [line.split(" ||| ")[:2] for line in plain]
    data = (folder / name).read_bytes()
    lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()
    trees = [json.loads(line) for line in lines]
    assert [(tree["line"], tree["source"]) for tree in trees] == list(enumerate(TEXT, start=1))
    for number, tree in enumerate(trees):
        rows = [line.split(" ||| ") for line in found if line.split(" ||| ")[0] == str(number)]
        assert [each["text"] for each in tree["translations"]] == [row[1] for row in rows]
        if not TEXT[number].strip():
            assert tree["nodes"] == [] and tree["translations"][0]["node"] is None
            continue
        for node in tree["nodes"][1:]:
            parent = tree["nodes"][node["parent"]]
            assert node["total"] == close_to(parent["total"] + node["log_probability"])
        best = read_nbest(tree)[:3]
        assert [score for _, score in best] == close_to([float(row[2]) for row in rows])
        ids = [tree["nodes"][each["node"]] for each in tree["translations"]]
        assert [node["score"] for node in ids] == [each["score"] for each in tree["translations"]]


def test_a_tree_of_a_translation_with_a_prefix_from_python(folder: Path) -> None:
    (folder / "prefix").write_text("Ein\n\n\n\nzwei\n")
    translate_file(
        folder / "model", folder / "in", folder / "out", tree=folder / "trees", prefix=folder / "prefix", quiet=True
    )
    trees = [json.loads(line) for line in (folder / "trees").read_text().splitlines()]
    assert [bool(tree["prefix"]) for tree in trees] == [True, False, False, False, True]
    assert trees[0]["nodes"][0]["total"] < 0 == trees[2]["nodes"][0]["total"]
    translator = Translator.load(folder / "model", "cpu")
    found = translator.translate_nbest(TEXT, translator.request(search={"tree": True}))
    assert found[0][0].tree is not None and found[1][0].tree is None


def test_options_that_exclude_a_tree_are_refused_before_anything_is_written(folder: Path) -> None:
    model, text, tree = folder / "model", folder / "in", folder / "none"
    for settings, printed in (
        ({"sampling": Sampling.of()}, "leave out --tree or --sample"),
        ({"resume": True}, "leave out --resume or --tree"),
    ):
        with pytest.raises(ConfigError, match=printed):
            translate_file(model, text, folder / "never", tree=tree, quiet=True, **settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="choose another name"):
        translate_file(model, text, folder / "never", tree=text, quiet=True)
    assert not tree.exists() and not (folder / "never").exists()
