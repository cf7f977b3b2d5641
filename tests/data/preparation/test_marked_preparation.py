"""Preparing a corpus with placeholders and terms: the contents of the shards, the report, and refusals."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.data.preparation.prepare import prepare
from dragoman.inference.control.marking import PairMarking, PlaceholdersConfig, TerminologyConfig
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.symbols import TERMINOLOGY
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

PAIRS = [
    ("Write to x@y.org .", "Schreib an x@y.org ."),
    ("A dog costs 1,234.50 .", "Ein Hund kostet 1,234.50 ."),
    ("Two dogs and 1,234.50 .", "Zwei Hunde und 1.234,50 ."),
    ("A dog sleeps .", "Ein Tier schläft ."),
]


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusConfig:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return CorpusConfig(pairs=path)


@pytest.fixture
def glossary(tmp_path: Path) -> TerminologyConfig:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\nsleeps\tschläft\n", encoding="utf-8")
    return TerminologyConfig(glossary=path, share=1.0)


def text(**settings: Any) -> TextConfig:
    return TextConfig.model_validate({"subword": {"kind": "bpe", "size": 300}, **settings})


def run(
    corpus: CorpusConfig, marking: PairMarking | None, given: TextConfig | Tokenizers | None = None
) -> PreparedCorpora:
    assert corpus.pairs is not None
    folder = corpus.pairs.parent / "cache"
    return prepare(corpus, CleaningConfig(enabled=False), given or text(), folder, workers=1, marking=marking)


def pieces(prepared: PreparedCorpora, row: int) -> list[str]:
    sides = prepared.tokenizers.source, prepared.tokenizers.target
    shown = zip(sides, prepared.dataset[row], strict=True)
    return [
        "".join(
            each.symbols[number] if each.symbols[number].startswith("⟨") else each.decode([0, number]) or "_"
            for number in ids.tolist()
        )
        for each, ids in shown
    ]


SPANS = PlaceholdersConfig(share=1.0, symbols=1)


@pytest.mark.parametrize("shared", [True, False])
def test_contents_of_the_shards(corpus: CorpusConfig, glossary: TerminologyConfig, shared: bool) -> None:
    prepared = run(corpus, PairMarking.of(SPANS, glossary), text(shared=shared))
    found = [[side.replace("Ġ", "_") for side in pieces(prepared, row)] for row in range(len(PAIRS))]
    plain = [["".join(side.split()) for side in each] for each in found]
    assert [side.count("⟨1⟩") for side in plain[0]] == [1, 1]
    assert "⟨term⟩" in plain[1][0] and "⟨as⟩" in plain[1][0] and plain[1][0].count("⟨1⟩") == 1
    assert "⟨1⟩" not in plain[2][0] + plain[2][1], "the numbers differ"
    assert "⟨term⟩" not in plain[2][0], "dogs is no dog"
    assert plain[3][0].count("⟨term⟩") == 1, "no Hund stands there, but schläft does"
    assert all("⟨term⟩" not in each[1] for each in plain)
    (report,) = prepared.reports
    assert report.marked == {"pairs_with_placeholders": 2, "placeholders": 2, "pairs_with_terms": 2, "terms": 2}
    assert "with placeholders" in report.table() and "2   pairs, 2 terms" in report.table()
    assert prepared.tokenizers.source.tags == ("⟨1⟩", *TERMINOLOGY)
    assert prepared.tokenizers.target.tags == (("⟨1⟩", *TERMINOLOGY) if shared else ("⟨1⟩",))
    assert run(corpus, PairMarking.of(SPANS, glossary), text(shared=shared)).reports[0].marked == report.marked


def test_without_the_settings_the_data_are_unchanged(corpus: CorpusConfig) -> None:
    """The folder and ids stay the same; so do the ids of pairs in which nothing is replaced."""
    plain = run(corpus, None)
    assert plain.reports[0].marked == {} and plain.tokenizers.source.tags == ()
    marked = run(corpus, PairMarking.of(SPANS, None))
    assert plain.fingerprints != marked.fingerprints
    for row in (2, 3):
        for side, other in zip(plain.dataset[row], marked.dataset[row], strict=True):
            assert side.tolist() == other.tolist()
    assert plain.dataset[0][0].tolist() != marked.dataset[0][0].tolist()


def test_the_fingerprint_includes_everything_that_affects_the_data(
    corpus: CorpusConfig, glossary: TerminologyConfig
) -> None:
    more = PlaceholdersConfig(share=1.0, symbols=1, words=0.5)
    seen = {PairMarking.of(*each).fingerprint for each in [(SPANS, None), (more, None), (SPANS, glossary)]}  # type: ignore[union-attr]
    glossary.glossary.write_text("dog\tHund\n", encoding="utf-8")
    seen.add(PairMarking.of(SPANS, glossary).fingerprint)  # type: ignore[union-attr]
    assert len(seen) == 4
    assert PairMarking.of(None, None) is None


def test_a_share_of_the_pairs_is_left_unchanged() -> None:
    marking = PairMarking.of(PlaceholdersConfig(share=0.3), None)
    assert marking is not None
    changed = sum(bool(marking("7 a@b.org", "7 a@b.org", line).spans) for line in range(2000))
    assert 500 < changed < 700


def test_added_symbols_have_the_same_position() -> None:
    marking = PairMarking.of(PlaceholdersConfig(share=1.0, added=1.0, symbols=2), None)
    assert marking is not None
    texts = {(pair.source.text({}), pair.target.text({})) for pair in (marking("a b.", "c d!", n) for n in range(60))}
    ends = {("a b .", "c d !"), ("a b ().", "c d ()!"), ("a b: .", "c d: !")}
    assert texts == {(" a b.", " c d!"), (": a b.", ": c d!"), *ends}
    pair = marking("a 7 b 8", "8 a 7 b", 1)
    assert pair.spans == 2, "no symbol is left"
    assert all(len(set(marking("7", "7", number).target.symbols)) == 2 for number in range(20))


def test_words_on_both_sides() -> None:
    marking = PairMarking.of(PlaceholdersConfig(share=1.0, words=1.0), None)
    assert marking is not None
    pair = marking("Anna is in Rom, Rom is not in Rome .", "Anna ist in Rom , nicht Rome .", 1)
    assert pair.source.parts[0] == "" and pair.spans == 2, "in is too short, and Rom stands there twice"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subword": {"kind": "word"}}, "word is not lossless: set text.subword.kind to bpe or unigram"),
        ({"vectors": {"width": 2}, "shared": False}, "feature vectors has no words"),
    ],
)
def test_unsuitable_settings_are_refused(corpus: CorpusConfig, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(corpus, PairMarking.of(SPANS, None), TextConfig.model_validate(given))


def test_vocabularies_that_lack_the_symbols(corpus: CorpusConfig) -> None:
    known = train_tokenizers(text(), ["a dog"], ["ein Hund"])
    with pytest.raises(ConfigError, match="lacks the symbol"):
        run(corpus, PairMarking.of(SPANS, None), known)


def test_a_process_gets_the_same_data(glossary: TerminologyConfig) -> None:
    marking = PairMarking.of(PlaceholdersConfig(share=1.0, words=0.5, added=0.5), glossary)
    assert marking is not None
    other = pickle.loads(pickle.dumps(marking))
    assert all(marking(*pair, 5) == other(*pair, 5) for pair in PAIRS)
    assert marking.fingerprint == other.fingerprint


@pytest.mark.parametrize("shared", [True, False])
def test_missing_symbols_are_added_to_a_start(corpus: CorpusConfig, shared: bool) -> None:
    data = {"train": corpus, "valid": corpus, "placeholders": SPANS}
    config = TranslationRun.model_validate({"data": data, "text": {"shared": shared}, "out": "run"})
    known = train_tokenizers(text(shared=shared, tags=["bt"]), ["a dog"], ["ein Hund"])
    grown = config.with_all_tags(known)
    assert grown.source.tags == ("bt", "⟨1⟩")
    assert grown.target.tags == (("bt", "⟨1⟩") if shared else ("⟨1⟩",))
    assert grown.source.symbols[: known.source.size] == known.source.symbols
    assert config.with_all_tags(grown) is grown


def test_invalid_settings(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="unknown kind 'phone'"):
        PlaceholdersConfig(kinds=("phone",))
    with pytest.raises(ValidationError, match="not a regular expression"):
        PlaceholdersConfig(patterns=("(",))
    with pytest.raises(DataError, match=r"^data.terminology.glossary: .*terms\.tsv"):
        PairMarking.of(None, TerminologyConfig(glossary=tmp_path / "terms.tsv"))
    with pytest.raises(ValidationError, match="it is a symbol of data.placeholders"):
        TextConfig(tags=("⟨1⟩",))
