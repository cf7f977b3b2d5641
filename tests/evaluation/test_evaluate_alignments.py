"""`dragoman evaluate alignments`: published figures, worked examples, formats, index bases and messages."""

import gzip
import json
import os
from pathlib import Path

import pytest

from dragoman import evaluate_alignments
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main

GOLD = ["1-1 2p3 3-2", "1-2 2-1", "", "1-1"]
LINKS = ["0-0 1-2 2-2", "0-1", "0-0", "0-0"]

# AER, precision, recall (percent) and links, as the README of lilt/alignment-scripts prints them.
PUBLISHED = {
    "fastalign.deen": (28.5, 71.3, 71.8, 9930),
    "fastalign.deen.reverse": (32.0, 69.7, 66.4, 9421),
    "fastalign.deen.intersection": (28.0, 87.1, 61.3, 6863),
    "fastalign.deen.union": (31.8, 61.4, 77.0, 12488),
    "fastalign.deen.grow-diagonal": (27.0, 84.5, 64.1, 7421),
    "fastalign.deen.grow-diagonal-final": (27.7, 80.6, 65.5, 7964),
    "fastalign.enfr": (16.4, 80.0, 90.1, 7313),
    "fastalign.enfr.reverse": (15.9, 81.3, 88.7, 6747),
    "fastalign.enfr.intersection": (11.2, 92.3, 84.5, 4901),
    "fastalign.enfr.grow-diagonal": (10.5, 90.8, 87.8, 5379),
    "giza.deen": (20.9, 86.3, 72.8, 8291),
    "giza.deen.reverse": (23.1, 86.6, 69.0, 7818),
    "giza.deen.grow-diagonal": (21.4, 94.2, 67.2, 6977),
    "giza.deen.grow-diagonal-final": (20.5, 91.3, 70.2, 7537),
    "giza.enfr": (8.0, 91.4, 92.9, 6069),
    "giza.enfr.grow-diagonal": (5.9, 97.5, 89.7, 5072),
}


@pytest.mark.skipif("DRAGOMAN_DATA" not in os.environ, reason="DRAGOMAN_DATA is not set")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures(name: str) -> None:
    folder = Path(os.environ["DRAGOMAN_DATA"]) / "alignments"
    gold = folder / f"{name.split('.')[1]}.talp.gz"
    lines = gzip.decompress((folder / "published" / f"{name}.talp.gz").read_bytes()).decode().splitlines()
    if name.endswith("reverse"):
        lines = [" ".join("-".join(reversed(link.split("-"))) for link in line.split()) for line in lines]
    result = evaluate_alignments(gold, {"system": lines}, quiet=True)
    aer, precision, recall, links = PUBLISHED[name]
    # The published figures are those of other copies of the files, from which single links of these copies differ.
    assert result["aer"] == pytest.approx(aer, abs=0.11)
    assert (result["precision"], result["recall"]) == pytest.approx((precision, recall), abs=0.11)
    assert result.systems[0][1] == pytest.approx(links, abs=7)


def test_worked_example() -> None:
    result = evaluate_alignments(GOLD, {"system": LINKS}, gold_base=1, quiet=True)
    # S = 5, P = 6, A = 6, A ∩ S = 3 (0-0, 0-1, 0-0), A ∩ P = 4 (and 1-2).
    assert (result.pairs, result.sure, result.possible, result.systems) == (4, 5, 6, (("system", 6),))
    assert result["aer"] == pytest.approx(100 * (1 - 7 / 11))
    assert result["precision"] == pytest.approx(100 * 4 / 6)
    assert result["recall"] == pytest.approx(100 * 3 / 5)
    assert result["f1"] == pytest.approx(2 * (400 / 6) * 60 / (400 / 6 + 60))
    assert "AER = 36.36" in str(result) and "gold:1-based|links:0-based|bs:1000|seed:12345" in str(result)


@pytest.mark.parametrize(
    "gold",
    [
        ["1-1 2?3 3-2", "2-1 1-2", "", "1-1"],
        ["1-1-S 2-3-P 3-2", "2-1 1-2 1-2-P", "", "1-1"],
        ["1 1 1 S", "1 2 3 P 0.5", "1 3 2", "2 1 2 S", "2 2 1 S", "4 1 1", "4 0 2 S", "4 2 0 P"],
    ],
    ids=["talp", "hansards", "naacl"],
)
def test_formats(gold: list[str]) -> None:
    expected = evaluate_alignments(GOLD, {"system": LINKS}, gold_base=1, quiet=True)
    result = evaluate_alignments(gold, {"system": LINKS}, gold_base=1, quiet=True)
    assert result.scores == expected.scores


def test_systems_in_naacl_format() -> None:
    links = ["1 1 1", "1 2 3", "1 3 3", "2 1 2", "3 1 1", "4 1 1"]
    result = evaluate_alignments(GOLD, {"system": links}, gold_base=1, quiet=True)
    assert result["aer"] == pytest.approx(100 * (1 - 7 / 11))


def test_bases_are_detected() -> None:
    zero, one = ["0-0 1-1"] * 10, ["1-1 2-2"] * 10
    for gold in (zero, one):
        for links in (zero, one):
            assert evaluate_alignments(gold, {"system": links}, quiet=True)["aer"] == 0
    with pytest.raises(ConfigError, match="give --hypothesis-base 0 or --hypothesis-base 1"):
        evaluate_alignments(["0-0"], {"system": ["1-1"]}, quiet=True)


def test_wrong_base_and_direction_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    gold = ["1-2 2-4 3-5 4-1 5-7"] * 10
    assert evaluate_alignments(gold, {"moved": gold}, gold_base=0, quiet=True)["aer"] > 50
    message = capsys.readouterr().err
    assert "moved: AER is 80.00, but would be 0.00 if the numbers of all words were larger by one" in message
    evaluate_alignments(gold, {"exchanged": ["2-1 4-2 5-3 1-4 7-5"] * 10}, quiet=True)
    message = capsys.readouterr().err
    assert "exchanged: AER is 100.00, but would be 0.00 if source and target were exchanged" in message
    evaluate_alignments(gold, {"system": gold}, quiet=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("gold", "links", "options", "message"),
    [
        (["1-1 x"], ["0-0"], {}, "gold, line 1: 'x' is not a link"),
        (["1-1"], ["0-0", "0-0"], {}, "gold has 1 lines and system has 2"),
        (["1 1 1 S", "one"], ["0-0"], {}, "gold, line 2: this is not a link in NAACL's format"),
        (
            ["1 1 1 S", "7 1 1 S"],
            ["0-0"],
            {},
            "gold, line 2: there is no sentence pair 7; they are numbered from 1 to 1",
        ),
        (["1-1"], ["0-0"], {"gold_base": 0, "hypothesis_base": 1}, "system, line 1: a word has the number 0"),
        (["1 1 1 S"], ["0-0"], {"gold_base": 0}, "gold is in NAACL's format, in which words are numbered from 1"),
        (["1-1"], ["0-0"], {"gold_base": 2}, "--gold-base is the number of the first word of a sentence, 0 or 1"),
        ([""], ["0-0"], {"gold_base": 1}, "gold contains no links"),
        (
            ["1-1"],
            ["0-3"],
            {"gold_base": 1, "source": ["a b"], "target": ["c d e"]},
            "system, sentence pair 1: the link with word 4 of the target is outside the sentence, which has 3 words",
        ),
    ],
)
def test_errors(gold: list[str], links: list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        evaluate_alignments(gold, {"system": links}, quiet=True, **options)  # type: ignore[arg-type]


def test_no_links_and_no_sure_links() -> None:
    result = evaluate_alignments(
        ["0p0", "1p1"], {"system": ["0-0", ""], "none": ["", ""]}, hypothesis_base=0, quiet=True
    )
    assert [result.scores[0][name].value for name in ("aer", "precision", "recall")] == [0, 100, 100]
    assert [result.scores[1][name].value for name in ("aer", "precision", "recall")] == [0, 100, 100]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"gold": ["1-1 2-2 3p2"] * 120, "good": ["0-0 1-1"] * 120, "bad": ["0-0 1-1 0-1"] * 60 + ["0-1"] * 60}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    arguments = ["--hypothesis", str(tmp_path / "bad"), "--hypothesis", str(tmp_path / "good")]
    assert main(["evaluate", "alignments", "--gold", str(tmp_path / "gold"), *arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["pairs"], result["sure"], result["possible"]) == (120, 240, 360)
    bad, good = result["systems"]
    assert (good["links"], good["scores"][0]["name"], good["scores"][0]["value"]) == (240, "AER", 0)
    assert bad["scores"][0]["interval"]["low"] < bad["scores"][0]["value"] < bad["scores"][0]["interval"]["high"]
    comparison = result["comparisons"][0]["metrics"][0]
    assert comparison["difference"] == pytest.approx(-bad["scores"][0]["value"]) and comparison["p_value"] < 0.05
    assert main(["evaluate", "alignments", "--gold", str(tmp_path / "gold"), *arguments, "--metric", "bleu"]) == 2
    assert "No such option: --metric" in capsys.readouterr().err
    assert main(["evaluate", "alignments", "--gold", str(tmp_path / "gold")]) == 2
    assert "Missing option '--hypothesis'" in capsys.readouterr().err


def test_links_are_drawn_over_the_annotation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"gold": GOLD, "links": LINKS, "source": ["a b c", "d e", "", "f"], "target": ["A B C", "D E", "", "F"]}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    links = ["evaluate", "alignments", "--gold", str(tmp_path / "gold"), "--hypothesis", str(tmp_path / "links")]
    links += ["--gold-base", "1"]
    texts = ["--source", str(tmp_path / "source"), "--target", str(tmp_path / "target")]
    (tmp_path / "links").write_text("0-0 1-2 2-2\n0-1\n\n0-0\n")
    draw = ["--draw", str(tmp_path / "links.json"), "--confusion", str(tmp_path / "confusion.csv")]
    assert main([*links, *texts, *draw]) == 0
    figure = json.loads((tmp_path / "links.json").read_text())
    assert figure["values"] == {
        "links-0": [[0, 0], [1, 2], [2, 2]],
        "sure": [[0, 0], [2, 1]],
        "possible": [[0, 0], [1, 2], [2, 1]],
    }
    assert figure["aligners"][0]["aer"] == pytest.approx(100 * (1 - 3 / 5))
    rows = (tmp_path / "confusion.csv").read_text().splitlines()
    assert [row.rpartition(",")[2] for row in rows[1:]] == ["3", "1", "1", "2"], "of 5 links and 5 sure links"
    capsys.readouterr()
    for arguments, message in (
        ([*links, *draw], "already exists"),
        ([*links, "--draw", str(tmp_path / "new.svg")], "give --source FILE and --reference FILE"),
        ([*links, *texts, "--draw", str(tmp_path / "new.svg"), "--draw-line", "5"], "there are 4 sentence pairs"),
        ([*links, *texts, "--draw", str(tmp_path / "new.svg"), "--draw-line", "3"], "blank"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err
