"""Lines of several sentences are translated sentence by sentence, so that no part of a long line is lost in silence."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from dragoman import Sampling, Translator, translate_file
from dragoman.control.control import Control
from dragoman.decode.search import SearchConfig
from dragoman.text import sentences
from dragoman.text.sentences import split_sentences
from dragoman.translation.alignment import AttentionChoice
from dragoman.translation.line_division import LineDivision
from dragoman.translation.line_warnings import LineWarnings
from dragoman.translation.request import Request, TextRequest
from dragoman.translation.result import Translation

PLAIN = Request(SearchConfig())
LINES = ["A dog ran.  Two men sleep! A man", "a dog", "", "Two men sleep.", "A man. A dog?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("division") / "model"
    write_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder, "cpu")


def divided(lines: Sequence[TextRequest], longest: int = 10_000) -> tuple[list[list[Translation]], list[str]]:
    """Return the translations of lines by a translator that writes capitals, and all texts that it was given."""
    asked: list[str] = []

    def translate(lines: Sequence[TextRequest], first: int, completes: bool) -> Iterator[list[Translation]]:
        for text, _ in lines:
            asked.append(text)
            yield [Translation(text.upper() + end, -1.0, -2.0, (5,), None) for end in ("", "2")]  # type: ignore[arg-type]

    division = LineDivision("en", lambda text, _: len(text) <= longest)
    return list(division.translate(lines, 1, translate)), asked


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("A dog ran. Two men sleep.", ["A dog ran.", "Two men sleep."]),
        ("A dog ran.  «Two men!»   A man?", ["A dog ran.", "«Two men!»", "A man?"]),
        ("One sentence only.", ["One sentence only."]),
        ("Dr. Smith ran at 5.30 to Mr. Jones.", ["Dr. Smith ran at 5.30 to Mr. Jones."]),
        ("A dog ran. ... Two men.", ["A dog ran. ...", "Two men."]),
        ("犬が走る。男が歩く。", ["犬が走る。", "男が歩く。"]),
        ("", [""]),
        (" \t ", [" \t "]),
        ("no end", ["no end"]),
    ],
)
def test_lines_are_divided_into_sentences(line: str, parts: list[str]) -> None:
    (hypotheses,), asked = divided([(line, PLAIN)])
    assert [each for each in asked if each] == [part for part in parts if part]
    assert hypotheses[0].text == line.upper()
    assert "".join(one for one, _ in hypotheses[0].parts) == (line if len(parts) > 1 else "")


def test_a_line_without_sentences_is_divided_at_the_maximum_length() -> None:
    line = "a dog and two men " * 900
    (hypotheses,), asked = divided([(line, PLAIN)])
    assert hypotheses[0].text == line.upper()
    assert max(map(len, asked)) <= 1000


def test_hypothesis_n_consists_of_hypothesis_n_of_each_sentence() -> None:
    ((best, second),), _ = divided([("A dog. A man.", PLAIN)])
    assert (best.text, second.text) == ("A DOG. A MAN.", "A DOG.2 A MAN.2")
    assert (best.score, best.log_probability, best.ids) == (-2.0, -4.0, (5, 2, 5))


def test_lines_with_a_prefix_or_phrases_or_too_long_sentences_stay_whole() -> None:
    line = "A dog. A man."
    for request in (
        Request(SearchConfig(), prefix="Ein"),
        Request(SearchConfig(), control=Control.of(["Hund"])),
        Request(SearchConfig(tree=True)),
    ):
        (hypotheses,), asked = divided([(line, request)])
        assert asked == [line]
        assert hypotheses[0].whole
    (hypotheses,), asked = divided([(line, PLAIN)], longest=5)
    assert asked == [line]
    assert not hypotheses[0].whole


def test_spans_to_keep_are_not_divided() -> None:
    control = Control.of(keep_patterns=[r"Hi\. You"])
    _, asked = divided([("A dog. Hi. You ran. A man.", Request(SearchConfig(), control=control))])
    assert [each for each in asked if each] == ["A dog.", "Hi. You ran.", "A man."]


def test_a_divided_line_is_translated_like_its_sentences(translator: Translator) -> None:
    one, two, three, four, five = translator.translate(["A dog ran.", "Two men sleep!", "A man", "A man.", "A dog?"])
    found = translator.translate(LINES, batch_size=2)
    assert found[0] == f"{one}  {two} {three}"
    assert found[1:3] == translator.translate(["a dog", ""])
    assert found[4] == f"{four} {five}"
    assert list(translator.stream(LINES, batch_size=1)) == found
    assert translator.translate(LINES, divide=False) == [best[0].text for best in translator.translate_nbest(LINES)]


def test_samples_depend_on_the_number_of_the_line_alone(translator: Translator) -> None:
    request = translator.request(sampling=Sampling(samples=2))
    found = translator.translate_nbest(LINES, request, divide=True)
    other = translator.translate_nbest(["x", *LINES[1:]], request, divide=True)
    assert [[each.text for each in line] for line in found[1:]] == [[each.text for each in line] for line in other[1:]]


def test_files_keep_their_lines_and_align_sentences(folder: Path, translator: Translator, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("".join(f"{line}\n" for line in LINES))
    choice = AttentionChoice()
    translate_file(folder, source, tmp_path / "out", alignments=tmp_path / "links", device="cpu", quiet=True)
    found = (tmp_path / "out").read_text().split("\n")[:-1]
    assert found == translator.translate(LINES)
    links = [[tuple(map(int, each.split("-"))) for each in line.split()] for line in (tmp_path / "links").open()]
    parts = ["A man.", "A dog?"]
    first, second = translator.align(parts, translator.translate(parts), choice)
    shift = len(translator.translate(parts[:1])[0].split())
    assert links[4] == [*first, *((i + 2, j + shift) for i, j in second)]
    translate_file(folder, source, tmp_path / "whole", divide=False, device="cpu", quiet=True)
    assert (tmp_path / "whole").read_text().split("\n")[:-1] == translator.translate(LINES, divide=False)
    translate_file(folder, source, tmp_path / "best", nbest=2, beam=2, device="cpu", quiet=True)
    numbers = [line.split(" ||| ")[0] for line in (tmp_path / "best").open()]
    assert sorted(set(numbers)) == ["0", "1", "2", "3", "4"]


def test_lost_text_and_whole_lines_are_reported(
    tmp_path: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("a dog\nA dog. A man.\n")
    (tmp_path / "prefix").write_text("\nEin\n")
    translate_file(folder, tmp_path / "in", tmp_path / "out", prefix=tmp_path / "prefix", device="cpu")
    told = " ".join(capfd.readouterr().err.split())
    assert "1 line(s) of several sentences were translated as a whole" in told
    assert ": line 2" in told


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("a dog " * 50, "ein Hund " * 20, False),
        ("a dog " * 50, "ein Hund", True),
        ("a dog " * 20, "Hund", False),
        ("犬が走る" * 20, "a dog " * 20, False),
        ("犬が走る" * 20, "a dog", True),
        ("a dog " * 40, "犬が走る" * 10, False),
    ],
)
def test_much_shorter_translations_are_counted(
    text: str, translation: str, expected: bool, translator: Translator
) -> None:
    warnings = LineWarnings()
    best = Translation(translation, 0.0, 0.0, (), translator.tokenizers.target)
    warnings.note_translation(1, text, best, translator.engine.limits.target)
    assert [what for what in warnings.counts if "much shorter" in what] == [
        "have translations that are much shorter than the text, so that parts may be missing"
    ] * expected


def test_lines_are_divided_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "_library", lambda required: None)
    assert split_sentences("A dog. »Two men!« A man", "en", required=False) == ["A dog. ", "»Two men!« ", "A man"]
    assert split_sentences("犬。男。", "ja", required=False) == ["犬。", "男。"]
