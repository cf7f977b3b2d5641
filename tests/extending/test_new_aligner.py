"""Aligners defined outside the package align words wherever the decoder's attention does."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_server import posted, served
from tiny_model import SOURCES, write_tiny_model

from dragoman import Translator, translate_document, translate_file
from dragoman.base.errors import ConfigError, DataError, TooLongError
from dragoman.engines.engine import Row
from dragoman.models.attention_weights import AttentionChoice
from dragoman.statistical.alignment.links import Alignment, format_pharaoh

WORDS = {"a": "EINEM", "dog": "HUND", "cat": "KATZE", "chases": "JAGT"}


class DictionaryAligner:
    """Links each target word to the first source word that the dictionary translates it from.

    It does not align pairs of more than `longest` source words.
    """

    def __init__(self, words: Mapping[str, str], longest: int = 1000) -> None:
        self.words, self.longest = words, longest
        self.batches: list[int] = []

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
        self.batches.append(batch_size)
        for place, source in enumerate(sources):
            if len(source.split()) > self.longest:
                raise TooLongError(place, "too many words")
        return [tuple(sorted(self.links(*pair))) for pair in zip(sources, targets, strict=True)]

    def links(self, source: str, target: str) -> Iterator[tuple[int, int]]:
        known = [self.words.get(word) for word in source.split()]
        return ((known.index(word), j) for j, word in enumerate(target.split()) if word in known)

    def settings(self) -> dict[str, Any]:
        return {"dictionary": dict(self.words), "longest": self.longest}


class DiagonalAligner(DictionaryAligner):
    """Links target word j of J to source word ⌊j·I/J⌋ of I."""

    def links(self, source: str, target: str) -> Iterator[tuple[int, int]]:
        words, others = len(source.split()), len(target.split())
        return ((j * words // others, j) for j in range(others) if words)


def backwards(row: Row) -> list[str]:
    """Return the dictionary's words in reverse order."""
    return [" ".join(WORDS.get(word, word) for word in reversed(row.text.split()))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(Path("model"))
    Path("in").write_text("\n".join([*SOURCES, "", "a dog " * 4]) + "\n")
    return tmp_path


def test_a_file_of_alignments(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    aligner = DiagonalAligner({}, longest=7)
    translate_file("model", "in", "out", alignments="links", aligner=aligner, batch_size=3)
    sources, targets = Path("in").read_text().splitlines(), Path("out").read_text().splitlines()
    expected = [
        format_pharaoh(tuple(aligner.links(*pair))) if len(pair[0].split()) <= 7 else ""
        for pair in zip(sources, targets, strict=True)
    ]
    assert Path("links").read_text().splitlines() == expected
    assert any(expected) and set(aligner.batches[1:]) == {3}
    assert f"1 line(s) are too long to be aligned: their alignments are blank: line {len(sources)}" in (
        capfd.readouterr().err
    )


def test_a_file_is_resumed_with_the_same_aligner_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.inference.translation.files.translated_file.COMMIT_INTERVAL", 0.0)
    monkeypatch.setattr("dragoman.inference.translation.translator.WINDOW_BATCHES", 1)

    class Failing(DiagonalAligner):
        def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
            if len(self.batches) == 2:
                raise ConfigError("no dictionary")
            return super().align(sources, targets, batch_size)

    how: dict[str, Any] = {"alignments": "links", "batch_size": 2}
    with pytest.raises(ConfigError, match="no dictionary"):
        translate_file("model", "in", "out", aligner=Failing({"a": "b"}), **how)
    for other in (None, DiagonalAligner({})):
        with pytest.raises(ConfigError, match="alignments"):
            translate_file("model", "in", "out", aligner=other, resume=True, **how)
    translate_file("model", "in", "out", aligner=DiagonalAligner({"a": "b"}), resume=True, **how)
    translate_file("model", "in", "other", aligner=DiagonalAligner({}), **{**how, "alignments": "other.links"})
    assert Path("links").read_text() == Path("other.links").read_text() != ""


def test_a_translator_aligns_with_its_own_aligner_unless_an_attention_is_named(folder: Path) -> None:
    translator = Translator.load("model", "cpu", aligner=DictionaryAligner(WORDS))
    assert translator.align(["a dog", "", "a cat"], ["HUND EINEM x", "y", "KATZE"]) == [((0, 1), (1, 0)), (), ((1, 0),)]
    by_attention = Translator.load("model", "cpu").align(["a dog"], ["Ein Hund"], attention=AttentionChoice(1))
    assert translator.align(["a dog"], ["Ein Hund"], attention=AttentionChoice(1)) == by_attention != [()]
    with pytest.raises(DataError, match="each source needs one target"):
        translator.align(["a"], [])
    page = translate_document(translator, "<p>a <b>dog</b></p>", format="html").text
    assert page.count("<b>") == 1


def test_the_servers_word_links_and_markup() -> None:
    aligner = DictionaryAligner(WORDS, longest=4)
    with served({"en-de": backwards}, aligner=aligner) as service:

        def asked(text: str, **more: Any) -> dict[str, Any]:
            fields = {"text": [text], "source": "en", "target": "de", **more}
            found: dict[str, Any] = posted(service, "/v1/translate", **fields).json()["translations"][0]
            return found

        found = asked("A dog chases a cat. The dog chases it.", alignment=True)
        links = [each["alignment"] for each in found["sentences"]]
        assert links == [[], [[1, 2], [2, 1]]]  # the first sentence has too many words
        assert asked("a dog chases it", alignment=True)["sentences"][0]["alignment"] == [[0, 3], [1, 2], [2, 1]]
        assert asked("dog <b>cat</b>", format="html")["text"] == "<b>KATZE</b> HUND"


def test_conflicting_options(folder: Path) -> None:
    with pytest.raises(ConfigError, match="aligner"):
        translate_file("model", "in", "out", aligner=DiagonalAligner({}))
    with pytest.raises(ConfigError, match="attention"):
        translate_file("model", "in", "out", alignments="l", aligner=DiagonalAligner({}), attention=AttentionChoice())
