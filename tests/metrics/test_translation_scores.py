"""Scores equal sacrebleu's, the deck's formula equals values by hand, and wrong input is refused with its counts."""

import gzip
import os
from pathlib import Path

import pytest
import sacrebleu

from dragoman.base.errors import ConfigError, DataError
from dragoman.metrics.bleu import BLEU, bleu_by_length
from dragoman.metrics.chrf import ChrF
from dragoman.metrics.lecture_bleu import LectureBLEU
from dragoman.metrics.moses_bleu import TokenisedBLEU, moses_tokenise
from dragoman.metrics.registry import key_of, metric_of
from dragoman.metrics.ter import TER

REFERENCE = [
    "The cat sat on the mat.",
    "A small dog runs in the garden, quickly.",
    "She reads a book about old ships today.",
]
SECOND = ["A cat was sitting on the mat.", "A little dog runs quickly.", "Today she reads about old ships."]
SYSTEM = ["The cat sat on a mat.", "A small dog runs fast in the garden.", "She reads the book about old ships."]


def test_bleu_chrf_and_ter_equal_sacrebleus() -> None:
    for references in ([REFERENCE], [REFERENCE, SECOND]):
        for ours, theirs in (
            (BLEU(), sacrebleu.corpus_bleu),
            (ChrF(), sacrebleu.corpus_chrf),
            (TER(), sacrebleu.corpus_ter),
        ):
            score = ours.score(SYSTEM, *references)
            assert score.value == theirs(SYSTEM, references).score
            assert f"nrefs:{len(references)}" in score.signature
            assert f"version:{sacrebleu.__version__}" in score.signature


@pytest.mark.parametrize(
    ("key", "theirs"),
    [
        ("bleu-lc", sacrebleu.metrics.BLEU(lowercase=True)),
        ("chrf++", sacrebleu.metrics.CHRF(word_order=2)),
    ],
)
def test_variants_equal_sacrebleus_with_its_options(key: str, theirs: sacrebleu.metrics.BLEU) -> None:
    references = [line.upper() for line in REFERENCE]
    expected = theirs.corpus_score(SYSTEM, [references]).score
    score = metric_of(key).score(SYSTEM, references)
    assert (score.value, score.signature) == (expected, str(theirs.get_signature()))


def test_a_perfect_translation() -> None:
    assert BLEU().score(REFERENCE, REFERENCE).value == pytest.approx(100)
    assert LectureBLEU().score(REFERENCE, REFERENCE).value == pytest.approx(100)
    assert TER().score(REFERENCE, REFERENCE).value == 0


def test_tokenised_bleu_lowercases_normalises_and_tokenises_as_its_signature_says() -> None:
    pytest.importorskip("sacremoses")
    assert moses_tokenise(["Ein „Hund“ rennt, schnell & weit."], "de") == [
        "ein &quot; hund &quot; rennt , schnell &amp; weit ."
    ]
    score = TokenisedBLEU("en").score(["A DOG runs in the “park”, today."], ['A dog runs in the "park", today.'])
    assert score.value == pytest.approx(100)
    assert "tokenised" in score.name
    assert "tok:none" in score.signature
    assert "lc.norm.tok.moses-en" in score.signature
    assert BLEU().score(["A DOG runs in the “park”, today."], ['A dog runs in the "park", today.']).value < 60


def test_a_language_without_rules_is_refused() -> None:
    pytest.importorskip("sacremoses")
    with pytest.raises(ConfigError, match=r"'xx'.*de, "):
        moses_tokenise(["Hund"], "xx")


def test_missing_sacremoses_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sacremoses", None)
    with pytest.raises(ConfigError, match=r'pip install "dragoman\[moses\]"'):
        TokenisedBLEU("en").score(SYSTEM, REFERENCE)


def test_the_official_tokenised_multi30k_is_reproduced_exactly() -> None:
    if "DRAGOMAN_DATA" not in os.environ:
        pytest.skip("DRAGOMAN_DATA, the folder of the corpora, is not set")
    pytest.importorskip("sacremoses")

    def read(name: str) -> list[str]:
        path = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k" / name
        return gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")

    for language in ("de", "en", "fr"):
        raw, official = read(f"test_2016_flickr.{language}.gz"), read(f"test_2016_flickr.lc.norm.tok.{language}.gz")
        assert moses_tokenise(raw, language) == official


def test_the_lecture_formula_by_hand() -> None:
    # Pair 1: precisions 5/5, 4/4, 3/3, 2/2 → 1. Pair 2: 3/4, 1/3, 0/2, 0/1 → 0. Lengths 9 against 10: factor 0.9.
    score = LectureBLEU().score(["a b c d e", "f g x h"], ["a b c d e", "f g h i j"])
    assert score.value == pytest.approx(100 * 0.9 * (1 + 0) / 2)
    assert "non-standard" in score.name
    # (3/5 · 2/4 · 1/3 · 0/2) = 0, but (4/5 · 3/4 · 2/3 · 1/2)^¼ = 0.2^¼.
    assert LectureBLEU().score(["a b c d x"], ["a b c d e"]).value == pytest.approx(100 * 0.2**0.25)
    # Matches are clipped: "a a" has one match in "a b"; longer output is not rewarded.
    assert LectureBLEU().score(["a a"], ["a b"]).value == 0
    assert LectureBLEU().score(["a"], ["a b"]).value == pytest.approx(50)
    assert LectureBLEU().score(["", "a b"], ["", "a b"]).value == pytest.approx(100)


def test_the_lecture_formula_takes_the_better_reference() -> None:
    assert LectureBLEU().score(["a b c d"], ["x y z"], ["a b c d"]).value == pytest.approx(100)


def test_bleu_by_length_scores_each_group_alone() -> None:
    sources = ["w " * 3, "w " * 12, "w " * 13]
    first, second = bleu_by_length(sources, SYSTEM, REFERENCE, edges=(2, 10, 20))
    assert (first.shortest, first.longest, first.sentences) == (2, 9, 1)
    assert first.score == BLEU().score(SYSTEM[:1], REFERENCE[:1])
    assert (second.shortest, second.longest, second.sentences) == (10, 19, 2)
    assert second.score == BLEU().score(SYSTEM[1:], REFERENCE[1:])


def test_lengths_below_and_above_all_edges_are_counted() -> None:
    sources = ["", "w", "w " * 99]
    groups = bleu_by_length(sources, SYSTEM, REFERENCE, edges=(2, 10))
    assert [(group.shortest, group.longest, group.sentences) for group in groups] == [(2, 9, 2), (10, None, 1)]


@pytest.mark.parametrize("metric", [BLEU(), ChrF(), TER(), LectureBLEU()])
def test_wrong_input_names_the_counts(metric) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=r"2 hypotheses.*3 lines"):
        metric.score(SYSTEM[:2], REFERENCE)
    with pytest.raises(DataError, match=r"3 hypotheses.*reference 2 has 1 lines"):
        metric.score(SYSTEM, REFERENCE, SECOND[:1])
    with pytest.raises(DataError, match="all 3 references are blank"):
        metric.score(SYSTEM, ["", " ", ""])
    with pytest.raises(DataError, match="no hypotheses"):
        metric.score([], [])
    with pytest.raises(DataError, match="no reference"):
        metric.score(SYSTEM)


def test_an_empty_hypothesis_counts_and_is_no_error() -> None:
    assert 0 < BLEU().score(["", *SYSTEM[1:]], REFERENCE).value < BLEU().score(SYSTEM, REFERENCE).value
    assert LectureBLEU().score(["", *SYSTEM[1:]], REFERENCE).value > 0


@pytest.mark.parametrize("metric", [BLEU(), ChrF(), TER(), LectureBLEU()])
def test_a_blank_line_among_references_is_counted_and_no_error(metric) -> None:  # type: ignore[no-untyped-def]
    blanks = ["", *REFERENCE[1:]]
    right = metric.score(blanks, blanks).value
    wrong = metric.score(REFERENCE, blanks).value
    assert right < wrong if metric.better == "lower" else right >= wrong


def test_by_length_names_unequal_sources() -> None:
    with pytest.raises(DataError, match="2 sources, but 3 hypotheses"):
        bleu_by_length(["a", "b"], SYSTEM, REFERENCE)


def test_names_of_metrics_in_any_spelling() -> None:
    names = {
        "BLEU": "bleu",
        "chrF2++": "chrf++",
        "chrF++": "chrf++",
        "chrF2": "chrf",
        "sacreBLEU": "bleu",
        "TER": "ter",
    }
    assert {name: key_of(name) for name in names} == names
    assert key_of("ROUGEL") == "rougeL" and key_of("blue") == "blue"
