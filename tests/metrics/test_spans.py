"""Spans from tags: detection of the scheme, two conventions, and the published scores of WNUT-17."""

import os
from pathlib import Path

import pytest

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import TaggedCorpusConfig
from dragoman.data.labelled.read import read_tagged
from dragoman.metrics.labels.scoring import tagging_report
from dragoman.metrics.labels.spans import Scheme, Span, detect_scheme, find_spans, has_span_tags


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        (["B-X I-X O B-X B-Y"], "IOB2"),
        (["O B-X O", "I-X I-X"], None),  # one sentence of each
        (["I-X I-X O I-Y B-Y I-Y I-X"], "IOB1"),
        (["O O", "I-X"], "IOB1"),
        (["S-X O B-X I-X E-X"], "IOBES"),
        (["O S-X"], "IOBES"),
        (["B-X E-X"], "IOBES"),
        (["U-X O B-X L-X"], "BILOU"),
        (["B-X L-X S-X"], None),
        (["PER O LOC"], None),
        (["NN VB"], None),
        (["O O O"], None),
        (["B-X X"], None),
        (["B_X O"], None),
        (["B I O B"], "IOB2"),
        (["I-X", "O I-X", "B-creative-work"], None),
    ],
)
def test_a_scheme_is_detected_or_must_be_set(sentences: list[str], scheme: Scheme | None) -> None:
    tags = [sentence.split() for sentence in sentences]
    if scheme is None:
        with pytest.raises(DataError, match="IOB|prefix|no span"):
            detect_scheme(tags)
    else:
        assert detect_scheme(tags) == scheme


def test_both_conventions_agree_on_complete_spans_only() -> None:
    complete = "B-X I-X B-X O B-Y".split()
    expected = [Span("X", 0, 2), Span("X", 2, 3), Span("Y", 4, 5)]
    assert find_spans(complete, "IOB2", "conlleval") == find_spans(complete, "IOB2", "strict") == expected
    broken = "I-X I-X O B-Y I-X".split()
    assert find_spans(broken, "IOB2", "conlleval") == [Span("X", 0, 2), Span("Y", 3, 4), Span("X", 4, 5)]
    assert find_spans(broken, "IOB2", "strict") == [Span("Y", 3, 4)]
    assert find_spans("B-X I-X".split(), "IOBES", "strict") == []
    assert find_spans("B-X I-X".split(), "IOBES", "conlleval") == [Span("X", 0, 2)]
    assert find_spans("E-X B-X E-X".split(), "IOBES", "conlleval") == [Span("X", 0, 1), Span("X", 1, 3)]


def test_tags_of_another_scheme_are_errors_and_not_zeros() -> None:
    for tag, scheme in (("PER", "IOB2"), ("E-X", "IOB1"), ("S-X", "BILOU"), ("BX", "IOB2"), ("", "IOB2")):
        with pytest.raises(DataError, match="sentence 1, word 2: .* is not a tag of"):
            tagging_report([["O", "O"]], [["O", tag]], scheme=scheme)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="have no prefix"):
        tagging_report([["PER", "O"]], [["PER", "O"]])
    assert not has_span_tags(["PER", "O"])


def test_one_output_has_two_f1_scores_by_name() -> None:
    gold = ["B-NP I-NP O B-VP".split(), "B-NP O".split()]
    predicted = ["I-NP I-NP O B-VP".split(), "I-NP O".split()]
    report = tagging_report(gold, predicted, samples=0)
    assert report["conlleval_f1"].value == 100
    assert report["strict_f1"].value == pytest.approx(50)  # precision 1/1, recall 1/3
    assert report["strict_precision"].value == 100
    assert report["conlleval_f1"].signature == "F1|conlleval|IOB2"
    assert report["strict_f1"].signature == "F1|strict|IOB2"
    assert report["accuracy"].value == pytest.approx(100 * 4 / 6)
    assert not [score.name for score in report.scores if score.name == "F1"]


def test_tags_of_single_words_have_no_span_scores() -> None:
    report = tagging_report([["NN", "VB"], ["NN"]], [["NN", "NN"], ["NN"]], samples=0)
    assert [score.key for score in report.scores] == [
        "accuracy",
        "macro_f1",
        "micro_f1",
        "weighted_f1",
        "matthews",
    ]
    assert report["macro_f1"].value == pytest.approx((80 + 0) / 2)
    assert "all predictions are 'NN'" in report.warnings["one_class"]
    assert tagging_report([["PER", "O"]], [["PER", "O"]], scheme=None, samples=0)["accuracy"].value == 100


def test_sentences_of_unequal_length_are_errors() -> None:
    with pytest.raises(DataError, match="sentence 2 has 2 correct tags, but 1 predictions"):
        tagging_report([["O"], ["B-X", "O"]], [["O"], ["O"]])
    with pytest.raises(DataError, match="there are 1 correct labels, but 2 predictions"):
        tagging_report([["B-X"]], [["O"], ["O"]])


def test_surface_forms_count_once() -> None:
    words = [["Bo", "ran"], ["Bo", "sat"], ["Cy", "sat"]]
    gold = [["B-P", "O"], ["B-P", "O"], ["B-P", "O"]]
    predicted = [["B-P", "O"], ["O", "O"], ["O", "B-P"]]
    report = tagging_report(gold, predicted, words=words, samples=0)
    assert report["conlleval_f1"].value == pytest.approx(100 * 2 / 5)
    assert report["surface_f1"].value == pytest.approx(100 * 2 / 4)  # Bo and Cy; Bo and sat
    wrong_place = tagging_report([["B-P", "O"], ["O", "O"]], [["O", "O"], ["B-P", "O"]], words=words[:2], samples=0)
    assert wrong_place["surface_f1"].value == 0


PUBLISHED = {  # Derczynski et al. (2017), table 5: F1 of entities and of surface forms
    "arcada": (39.98, 37.77),
    "drexel_cci": (26.30, 25.26),
    "flytxt": (38.35, 36.31),
    "mic_cis": (37.06, 34.25),
    "sjtu_adapt": (40.42, 37.62),
    "spinningbytes": (40.78, 39.33),
    "uh_ritual": (41.86, 40.24),
}


@pytest.mark.skipif("DRAGOMAN_DATA" not in os.environ, reason="DRAGOMAN_DATA does not name a folder of corpora")
@pytest.mark.parametrize("name", ["arcada", *(pytest.param(each, marks=pytest.mark.slow) for each in [*PUBLISHED][1:])])
def test_the_systems_of_wnut17_have_their_published_scores(name: str) -> None:
    folder = Path(os.environ["DRAGOMAN_DATA"]) / "wnut17"
    gold = read_tagged(TaggedCorpusConfig(path=folder / "test.conll.gz"))
    system = read_tagged(TaggedCorpusConfig(path=folder / "submissions" / f"{name}.conll.gz"))
    report = tagging_report(
        [sentence.tags or () for sentence in gold],
        [sentence.tags or () for sentence in system],
        words=[sentence.words for sentence in gold],
        samples=0,
    )
    assert (f"{report['conlleval_f1'].value:.2f}", f"{report['surface_f1'].value:.2f}") == tuple(
        f"{score:.2f}" for score in PUBLISHED[name]
    )


def test_a_few_faults_of_annotators_are_reported_and_tolerated(capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = "B-X I-X O B-Y".split(), "O I-X I-X".split()
    assert detect_scheme([right] * 10 + [wrong] + [right] * 5) == "IOB2"
    told = " ".join(capsys.readouterr().err.split())
    assert "read as IOB2, although 1 of 31 spans are not marked so (first in sentence 11: I-X begins a span)" in told
    with pytest.raises(DataError, match=r"neither IOB2 \(10 faults, first in sentence 11: I-X .* nor IOB1 \(20 faults"):
        detect_scheme([right] * 10 + [wrong] * 10)
