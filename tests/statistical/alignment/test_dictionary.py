"""`dragoman lexicon`: counts of worked examples, both formats, and the words of the embedded grammar."""

from pathlib import Path

import pytest
from embedded_corpus import generate

import dragoman
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.inference.control.glossary import Glossary
from dragoman.statistical.alignment.dictionary import Dictionary, Entry, extract_dictionary
from dragoman.statistical.alignment.estimation.words import WordsConfig

SOURCES = ["the Front door", "the door", "door closed .", "a door"]
TARGETS = ["die Haustür", "die Tür", "Tür zu gemacht .", "eine Tür"]
LINKS = [((0, 0), (1, 1), (2, 1)), ((0, 0), (1, 1)), ((0, 0), (1, 1), (1, 2), (2, 3)), ((0, 0), (1, 1))]


def extract(**options: float) -> Dictionary:
    arguments = {"min_count": 1, "min_probability": 0.0, "translations": 3, **options}
    return extract_dictionary(SOURCES, TARGETS, LINKS, WordsConfig(), **arguments)  # type: ignore[arg-type]


def test_worked_example() -> None:
    # "Haustür" has two links, so it is the translation of neither word; "." has no letter.
    assert extract().entries == (
        Entry("door", "Tür", 3, 1, 1),
        Entry("the", "die", 2, 1, 1),
        Entry("a", "eine", 1, 1, 1),
        Entry("closed", "zu gemacht", 1, 1, 1),
    )
    assert [each.source for each in extract(min_count=2).entries] == ["door", "the"]


def test_probabilities_and_limits() -> None:
    sources, targets = ["dog"] * 10, ["Hund"] * 6 + ["hund"] + ["Köter"] * 2 + ["Rüde"]
    links = [((0, 0),)] * 10
    found = extract_dictionary(
        [*sources, "cur"],
        [*targets, "Köter"],
        [*links, ((0, 0),)],
        WordsConfig(),
        min_count=1,
        min_probability=0.2,
        translations=2,
    )
    assert found.entries == (
        Entry("dog", "Hund", 7, 0.7, 1),
        Entry("dog", "Köter", 2, 0.2, 2 / 3),
        Entry("cur", "Köter", 1, 1, 1 / 3),
    )
    assert found.tsv().splitlines()[:2] == [
        "# source\ttarget\tp(target|source)\tp(source|target)\tcount",
        "dog\tHund\t0.7000\t1.0000\t7",
    ]
    assert found.glossary() == "dog\tHund\tKöter\ncur\tKöter\n"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "source").write_text("a red door\na blue door\nthe red dog\nthe blue dog\nthe door\na dog\n" * 3)
    (tmp_path / "target").write_text(
        "eine rote Tür\neine blaue Tür\nder rote Hund\nder blaue Hund\ndie Tür\nein Hund\n" * 3
    )
    files = ["--source", str(tmp_path / "source"), "--target", str(tmp_path / "target"), "--quiet"]
    output = tmp_path / "terms.tsv.gz"
    assert main(["lexicon", *files, "--format", "glossary", "-o", str(output)]) == 0
    assert Glossary.read(output).find("The red door")[-1].phrase.alternatives == ("Tür",)
    assert main(["lexicon", *files, "--translations", "1", "method.kind=ibm1"]) == 0
    assert "door\tTür\t1.0000\t1.0000\t9\n" in capsys.readouterr().out
    assert main(["lexicon", *files, "--min-count", "99"]) == 1
    assert "no word has a translation that occurs 99 times" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="there is no dictionary format 'json': choose tsv or glossary"):
        dragoman.lexicon(["a"], ["b"], format="json")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="--model is already trained"):
        dragoman.lexicon(["a"], ["b"], model=tmp_path, overrides={"method.kind": "ibm1"})
    with pytest.raises(DataError, match="has 1 lines and target has 2"):
        dragoman.lexicon(["a"], ["b", "c"])


def test_nouns_of_the_embedded_grammar() -> None:
    sentences, _ = generate(seed=3, train=1500)
    nouns = pytest.importorskip("dragoman.addons.lecture.grammar.lexicon.nouns").NOUNS
    sides = [sentence.en for sentence in sentences], [sentence.de for sentence in sentences]
    overrides = {"method.kind": "hmm", "method.ibm1_iterations": 4, "method.iterations": 3}
    dictionary = dragoman.lexicon(*sides, translations=1, overrides=overrides, threads=1, quiet=True)
    best = {each.source: each.target for each in dictionary.entries}
    correct = {}
    for noun in nouns.values():
        for number, form in enumerate(noun.english):
            if form in best:
                stem = noun.german[number]
                correct[form] = best[form] in {
                    stem,
                    noun.german_genitive,
                    *(stem + end for end in ("n", "en", "s", "es")),
                }
    assert len(correct) > 150
    assert sum(correct.values()) / len(correct) >= 0.9, [form for form, is_correct in correct.items() if not is_correct]
