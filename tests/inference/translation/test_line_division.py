"""Lines of several sentences are translated sentence by sentence, so that no part of a long line is lost in silence."""

import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from dragoman import Sampling, Translator, evaluate, translate_file
from dragoman.cli.main import main
from dragoman.decode.search import SearchConfig
from dragoman.inference.control.control import Control
from dragoman.inference.translation.line_division import LineDivision
from dragoman.inference.translation.line_warnings import LineWarnings
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.stream import LineStream, StreamSettings
from dragoman.text.sentences.division import MAX_LENGTH
from dragoman.text.sentences.splitter import may_be_divided

PLAIN = Request(SearchConfig())
LINES = ["A dog ran.  Two men sleep! A man", "a dog", "", "Two men sleep.", "1. A man. A dog?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("division") / "model"
    write_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder, "cpu")


def sentences(line: str, request: Request = PLAIN, language: str = "en", longest: int = 10_000) -> list[str]:
    """Return the texts of a line that are translated."""
    division = LineDivision(language, lambda text, _: len(text) <= longest)
    return [text for text, _ in division.divide(line, request).texts()]


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("en", "A dog ran. Two men sleep.", ["A dog ran.", "Two men sleep."]),
        ("en", "A dog ran.  «Two men!»   A man?", ["A dog ran.", "«Two men!»", "A man?"]),
        ("en", "One sentence only.", ["One sentence only."]),
        ("en", "Dr. Smith ran 5.30 km to Mr. J. R. Lee.", ["Dr. Smith ran 5.30 km to Mr. J. R. Lee."]),
        ("en", "It ran... and fell. See x.org/a.b?c=d. Go!", ["It ran... and fell.", "See x.org/a.b?c=d.", "Go!"]),
        ("de", "Z. B. am 3. Mai kam Dr. Müller. Er ging.", ["Z. B. am 3. Mai kam Dr. Müller.", "Er ging."]),
        ("en_GB", "1. A dog ran. 2. A man ran.", ["A dog ran.", "A man ran."]),
        ("en", "a dog\ttwo men", ["a dog", "two men"]),
        ("en", "a dog\ntwo men", ["a dog", "two men"]),
        ("ja", "犬が走る。男が歩く。", ["犬が走る。", "男が歩く。"]),
        ("hi", "यह एक है। यह दो है।", ["यह एक है।", "यह दो है।"]),
        ("ur", "یہ ایک ہے۔ یہ دو ہے۔", ["یہ ایک ہے۔", "یہ دو ہے۔"]),
        ("am", "ሰላም። እንዴት ነህ።", ["ሰላም።", "እንዴት ነህ።"]),
        ("el", "Τι κάνεις; Καλά.", ["Τι κάνεις;", "Καλά."]),
        (
            "ja",
            "「行くの？」と彼は言った。「行く。」とても良い。",
            ["「行くの？」と彼は言った。", "「行く。」", "とても良い。"],
        ),
        ("km", "សួស្តី។ អ្នកសុខ។", ["សួស្តី។", "អ្នកសុខ។"]),
        ("en", "'A dog,' said he. 'It ran.'", ["'A dog,' said he.", "'It ran.'"]),
        ("en", "He said “It ran. It fell.” and left.", ["He said “It ran. It fell.” and left."]),
        ("en", "", [""]),
        ("en", " \t ", [" \t "]),
        ("en", " no end ", [" no end "]),
        ("en", "12. 13! 14", ["12. 13! 14"]),
        ("en", "Broken \udcff byte. A dog.", ["Broken \udcff byte.", "A dog."]),
    ],
)
def test_lines_are_divided_into_sentences(language: str, line: str, expected: list[str]) -> None:
    assert sentences(line, language=language) == expected


def test_long_lines_that_stay_whole_are_reported_at_once(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the first one is, before its search begins, with its number of tokens and the remedy."""
    monkeypatch.setattr("dragoman.inference.translation.stream._LONG_SOURCE", 20)
    line = " ".join(LINES) * 2
    texts, aligner_of = translator.training_texts, translator.aligner_of
    stream = LineStream(translator.engine, translator.codec, translator.division, texts, aligner_of)
    beginnings = dict[str, str]()
    for name, request in {
        "divided": translator.request(beam=1),
        "whole": translator.request(beam=1, divide=False),
        "again": translator.request(beam=1, divide=False),
    }.items():
        found = stream.translations([[("a dog", request), (line, request)]], StreamSettings(batch_size=2, first=7))
        monkeypatch.setattr(translator.engine, "hypotheses", lambda *_: pytest.fail("the search has begun"))
        with suppress(pytest.fail.Exception):
            next(found)
        monkeypatch.undo()
        monkeypatch.setattr("dragoman.inference.translation.stream._LONG_SOURCE", 20)
        beginnings[name] = " ".join(capfd.readouterr().err.split())
    assert beginnings["divided"] == beginnings["again"] == ""
    assert re.search(r"line 8 has \d+ tokens and is translated as a whole.*leave out --no-divide", beginnings["whole"])


@pytest.mark.parametrize(("opening", "closing"), ['""', "“”", "()", "„“", "«»"])
def test_long_quotations_are_divided(opening: str, closing: str) -> None:
    first, second = "A man in a blue shirt is standing on a long ladder.", "Two dogs are running over the green grass."
    line = f"{opening}{' '.join([first, second] * 30)}{closing}"
    assert sentences(line) == [opening + first, *[second, first] * 29, second + closing]
    sentence = "犬が走って男が静かに歩いている。"
    assert sentences(f"「{sentence * 9}」") == ["「" + sentence, *[sentence] * 7, sentence + "」"]


@pytest.mark.parametrize("line", ["a dog and two men " * 900, "a" * 5000, "犬が走って" * 400, "12 345 " * 900])
def test_lines_without_sentence_ends_are_divided_by_length(line: str) -> None:
    parts = sentences(line)
    longest = MAX_LENGTH // 3 if line[0] == "犬" else MAX_LENGTH
    assert len(parts) > 1 and max(map(len, parts)) <= longest
    assert "".join(parts).replace(" ", "") == line.replace(" ", "")


@pytest.mark.parametrize(
    "line",
    ["A dog ran. ", "a", "犬。", "。", "1. ", "?!.", "ที่ ", '"!" . ', "“A ", "A\t", "a\u0301", "z. B. 3. "],
)
def test_the_time_for_a_line_is_linear_in_its_length(line: str) -> None:
    def seconds(characters: int) -> float:
        text = (line * characters)[:characters]
        started = time.process_time()
        sentences(text)
        return time.process_time() - started

    assert min(seconds(20_000) for _ in range(2)) < 8 * min(seconds(5_000) for _ in range(2)) + 0.02


@pytest.mark.parametrize(
    "request_",
    [
        Request(SearchConfig(), prefix="Ein"),
        Request(SearchConfig(), control=Control.of(["Hund"])),
        Request(SearchConfig(tree=True)),
    ],
)
def test_lines_with_a_prefix_or_phrases_or_a_tree_stay_whole(request_: Request) -> None:
    line = LineDivision("en", lambda *_: True).divide("A dog. A man.", request_)
    assert line.forced and not line.spans
    assert not LineDivision("en", lambda *_: True).divide("A dog.", request_).forced


def test_lines_with_a_sentence_that_is_too_long_for_the_model_stay_whole() -> None:
    assert sentences("A dog. A man ran.", longest=8) == ["A dog. A man ran."]
    line = LineDivision("en", lambda text, _: len(text) <= 8).divide_to_fit("A dog. A man ran.", PLAIN)
    assert [text for text, _ in line.texts()] == ["A dog.", "A man", "ran."]


def test_spans_to_keep_are_not_divided() -> None:
    line = "A dog. Hi. You ran. 7. A man."
    assert sentences(line) == ["A dog.", "Hi.", "You ran.", "A man."]
    for pattern, expected in (
        (r"Hi\. You", ["A dog.", "Hi. You ran.", "A man."]),
        (r"ran\. 7", ["A dog.", "Hi.", "You ran. 7", "A man."]),
        ("7", ["A dog.", "Hi.", "You ran.", "A man."]),
        ("dog", ["A dog.", "Hi.", "You ran.", "A man."]),
        (".*", [line]),
    ):
        request = Request(SearchConfig(), control=Control.of(keep_patterns=[pattern]))
        assert sentences(line, request) == expected


def test_hypothesis_n_consists_of_hypothesis_n_of_each_sentence(translator: Translator) -> None:
    request = translator.request(beam=3, nbest=3, search={"token_scores": True})
    (found,) = translator.translate_nbest(["- A dog. 1. A man."], request)
    parts = translator.translate_nbest(["A dog.", "A man."], request)
    assert len(found) == 3
    for whole, *two in zip(found, *parts, strict=True):
        assert whole.text == f"- {two[0].text} 1. {two[1].text}"
        assert whole.score == sum(each.score for each in two)
        assert sum(whole.token_log_probabilities) == pytest.approx(whole.log_probability)
        ends = [each.finished for each in two]
        assert len(whole.token_log_probabilities) == len(whole.ids) + ends[1]
        assert whole.finished == all(ends)
        assert "".join(part.source for part in whole.parts) == "- A dog. 1. A man."
        assert "".join(part.translation for part in whole.parts) == whole.text
        assert [part.source for part in whole.parts if part.is_copied] == ["- ", " 1. "]


def test_a_divided_line_is_translated_like_its_sentences(translator: Translator) -> None:
    one, two, three, four, five = translator.translate(["A dog ran.", "Two men sleep!", "A man", "A man.", "A dog?"])
    found = translator.translate(LINES, batch_size=2)
    assert found[0] == f"{one}  {two} {three}"
    assert found[1:3] == translator.translate(["a dog", ""], divide=False)
    assert found[4] == f"1. {four} {five}"
    assert list(translator.stream(LINES, batch_size=1)) == found
    assert [best[0].text for best in translator.translate_nbest(LINES)] == found
    whole = translator.translate(LINES, divide=False)
    assert whole[0] != found[0] and whole[1:4] == found[1:4]
    requests = [translator.request(divide=index != 0) for index in range(len(LINES))]
    assert translator.translate(LINES, requests=requests) == [whole[0], *found[1:]]


def test_samples_depend_on_the_number_of_the_line_alone(translator: Translator) -> None:
    request = translator.request(sampling=Sampling(samples=2))
    found = translator.translate_nbest([*LINES, "A dog. A dog. A dog."], request)
    other = translator.translate_nbest(["x", *LINES[1:], "A dog. A dog. A dog."], request, batch_size=1)
    assert [[each.text for each in line] for line in found[1:]] == [[each.text for each in line] for line in other[1:]]
    drawn = [part.translation for part in found[-1][0].parts if not part.is_copied]
    assert len(set(drawn)) > 1
    whole = translator.translate_nbest([*LINES[:2]], replace(request, divide=False))
    assert [each.text for each in whole[1]] == [each.text for each in found[1]]


def test_files_keep_their_lines_and_align_sentences(folder: Path, translator: Translator, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("".join(f"{line}\n" for line in LINES))
    translate_file(folder, source, tmp_path / "out", alignments=tmp_path / "links", device="cpu", quiet=True)
    assert (tmp_path / "out").read_text().split("\n")[:-1] == translator.translate(LINES)
    links = [[tuple(map(int, each.split("-"))) for each in line.split()] for line in (tmp_path / "links").open()]
    parts = ["A man.", "A dog?"]
    first, second = translator.align(parts, translator.translate(parts))
    shift = len(translator.translate(parts[:1])[0].split())
    assert links[4] == [(0, 0), *((i + 1, j + 1) for i, j in first), *((i + 3, j + 1 + shift) for i, j in second)]
    translate_file(folder, source, tmp_path / "whole", divide=False, device="cpu", quiet=True)
    assert (tmp_path / "whole").read_text().split("\n")[:-1] == translator.translate(LINES, divide=False)
    translate_file(folder, source, tmp_path / "best", nbest=2, beam=2, device="cpu", quiet=True)
    numbers = [line.split(" ||| ")[0] for line in (tmp_path / "best").open()]
    assert sorted(set(numbers)) == ["0", "1", "2", "3", "4"]


def test_a_hypothesis_of_each_sentence_is_chosen(folder: Path, translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("A dog. Two men sleep.\n")
    (tmp_path / "parts").write_text("A dog.\nTwo men sleep.\n")
    for name in ("in", "parts"):
        translate_file(
            folder, tmp_path / name, tmp_path / f"{name}.out", mbr="chrf", nbest=5, beam=5, device="cpu", quiet=True
        )
    assert (tmp_path / "in.out").read_text() == (tmp_path / "parts.out").read_text().replace("\n", " ").strip() + "\n"


def test_lines_that_are_translated_as_a_whole_are_counted(
    tmp_path: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("a dog\nA dog. A man.\n")
    (tmp_path / "prefix").write_text("\nEin\n")
    translate_file(folder, tmp_path / "in", tmp_path / "out", prefix=tmp_path / "prefix", device="cpu")
    told = " ".join(capfd.readouterr().err.split())
    assert "1 line(s) of several sentences were translated as a whole" in told
    assert ": line 2" in told


def test_evaluation_scores_what_translate_writes(
    folder: Path, translator: Translator, capfd: pytest.CaptureFixture[str]
) -> None:
    found = evaluate(folder, source=LINES, reference=LINES, metric=["chrf"], device="cpu").systems[0]
    assert list(found.translations) == translator.translate(LINES)
    assert "2 of 5 lines have several sentences" in " ".join(capfd.readouterr().err.split())
    whole = evaluate(folder, source=LINES, reference=LINES, metric=["chrf"], device="cpu", divide=False).systems[0]
    assert list(whole.translations) == translator.translate(LINES, divide=False)
    assert "several sentences" not in capfd.readouterr().err
    for model in ([], [str(folder)]):
        assert main(["evaluate", *model, "--reference", "x", "--hypothesis", "x", "--no-divide"]) != 0
    assert "--no-divide can only be used with a model to translate with" in " ".join(capfd.readouterr().err.split())


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


def test_lines_of_one_sentence_are_recognised_quickly() -> None:
    for line in ("Two men sleep.", "a dog", "A dog, a man and 5.30 dogs!", "“A dog!”", "犬が走る。", "Hi! ", "…"):
        assert not may_be_divided(line)
