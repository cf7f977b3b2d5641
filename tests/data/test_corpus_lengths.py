"""The lengths of the training pairs: measured, stored with the model, and used to judge inputs and translations."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import tiny_tokenizers, write_tiny_model

from dragoman import Translator, translate_file
from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.meta import Meta, dump_meta, parse_meta
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.lengths import MIN_PAIRS, CorpusLengths, LengthQuantiles, compared_lengths
from dragoman.data.preparation.prepare import prepare
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.guard.guard import Guard
from dragoman.inference.translation.line_division import LineDivision
from dragoman.inference.translation.line_warnings import LineWarnings
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.rounds.retry import other_searches
from dragoman.inference.translation.training_texts import TrainingTexts
from dragoman.tasks.augmentation.filters import FilterConfig, ScoredPair, broken_rule
from dragoman.tasks.translation.corpus_lengths import measure_lengths
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.bpe import BPEConfig


def made_pairs(count: int, ratio: float, letters: str = "abcdefghij", seed: int = 1) -> list[tuple[str, str]]:
    """Return pairs of random texts without common words, whose lengths have this ratio on average."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        length = draw.randint(20, 120)
        target = max(1, round(draw.gauss(ratio * length, (ratio * length) ** 0.5)))
        pairs.append(("x" * length, "".join(draw.choices(letters, k=target))))
    return pairs


def lengths_of(pairs: list[tuple[str, str]]) -> CorpusLengths:
    """Return the lengths of pairs whose tokens are characters."""
    measured = CorpusLengths.of(np.array([[len(text) for text in pair] for pair in pairs], np.int32), pairs)
    assert measured is not None
    return measured


@given(st.lists(st.integers(0, 300), min_size=1, max_size=200))
def test_quantiles_are_the_smallest_lengths_that_enough_texts_do_not_exceed(lengths: list[int]) -> None:
    measured = LengthQuantiles.of(np.array(lengths, np.int32))
    assert measured.maximum == max(lengths)
    for share, value in ((0.5, measured.median), (0.99, measured.q99)):
        assert value == np.quantile(lengths, share, method="inverted_cdf")


@pytest.mark.parametrize("ratio", [0.3, 1.15, 3.1])
def test_the_ratio_and_its_spread_are_estimated_in_spite_of_faulty_pairs(ratio: float) -> None:
    faulty = [("x" * 100, "y"), ("x", "y" * 100)] * 20
    measured = lengths_of(made_pairs(3000, ratio) + faulty).character_ratio
    assert measured.median == pytest.approx(ratio, rel=0.03)
    assert measured.spread == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("ratio", "source", "target", "verdict"),
    [
        (1.15, "x" * 60, "y" * 69, None),
        (1.15, "x" * 60, "y" * 30, "short"),
        (1.15, "x" * 60, "y" * 45, None),
        (1.15, "x" * 10, "y" * 4, None),  # a short text
        (1.15, "x" * 3500, "y" * 170, "short"),
        (1.15, "x" * 3500, "y" * 3000, None),  # a small deviation of a long text
        (1.15, "x" * 60, "y" * 140, "long"),
        (1.15, "x" * 60, "y" * 100, None),
        (0.33, "x" * 90, "犬" * 30, None),
        (0.33, "x" * 90, "犬" * 5, "short"),
        (0.33, "x" * 90, "犬" * 90, "long"),
        (3.1, "犬" * 30, "y" * 93, None),
        (3.1, "犬" * 30, "y" * 30, "short"),
        (
            0.33,
            "see https://example.org/a/very/long/address/of/a/page",
            "見 https://example.org/a/very/long/address/of/a/page",
            None,
        ),
    ],
)
def test_a_length_is_judged_by_the_ratio_of_the_corpus(ratio: float, source: str, target: str, verdict: str) -> None:
    assert lengths_of(made_pairs(1000, ratio)).judge(source, target) == verdict


def test_few_pairs_do_not_judge_lengths() -> None:
    assert lengths_of(made_pairs(MIN_PAIRS - 1, 1)).judge("x" * 3000, "y") is None
    assert lengths_of(made_pairs(MIN_PAIRS, 1)).judge("x" * 3000, "y") == "short"
    assert CorpusLengths.of(np.zeros((3, 2), np.int32), [("", "a"), ("b", "")]) is None


def test_common_words_are_not_compared() -> None:
    assert compared_lengths(" see a@b.org and a@b.org ", "a@b.org zu sehen") == (16, 9)
    assert compared_lengths("猫は犬", "猫") == (3, 1)


def test_lengths_are_measured_on_the_prepared_pairs_of_each_language(tmp_path: Path) -> None:
    texts = {"de": [("a dog", "ein Hund"), ("two dogs sleep", "zwei Hunde")], "fr": [("the dog", "le chien")]}
    corpora = []
    for language, pairs in texts.items():
        (tmp_path / language).write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
        corpora.append(CorpusConfig(pairs=tmp_path / language, target_language=language, tags=("web",)))
    text = TextConfig(subword=BPEConfig(size=300, min_frequency=1))
    prepared = prepare(corpora, CleaningConfig(), text, tmp_path / "prepared")
    measured = measure_lengths(corpora, prepared)
    for language, pairs in texts.items():
        ids = zip(
            prepared.tokenizers.source.encode_batch([source for source, _ in pairs]),
            prepared.tokenizers.target.encode_batch([target for _, target in pairs]),
            strict=True,
        )
        tokens = np.array([[len(source), len(target)] for source, target in ids], np.int32)
        assert measured[language] == CorpusLengths.of(tokens, pairs)


def test_metadata_keeps_the_lengths() -> None:
    meta = Meta(step=1, lengths={"": lengths_of(made_pairs(600, 1))})
    assert parse_meta(dump_meta(meta), "meta.json") == meta
    assert parse_meta(dump_meta(Meta(step=1)), "meta.json").lengths_of("de") is None


LENGTHS = lengths_of(made_pairs(1000, 1.15))
SHORT, LONG = ("x" * 100, "y" * 20), ("x" * 60, "y " * 90)


def test_the_guard_finds_faulty_lengths_only_if_it_has_the_lengths_of_the_corpus() -> None:
    guard = Guard(lengths=LENGTHS)
    assert [finding.kind for finding in guard.findings(*SHORT)] == ["short"]
    assert "long" in [finding.kind for finding in guard.findings(*LONG)]
    assert [finding.kind for finding in guard.findings("x" * 100, "")] == ["empty"]
    assert Guard().findings(*SHORT) == ()
    assert "lengths" not in Guard().settings()
    assert guard.settings()["lengths"]["pairs"] == 1000


def test_further_searches_for_faulty_lengths_change_the_limits_of_the_length() -> None:
    request = Request(SearchConfig(beam=5), guard=Guard(lengths=LENGTHS))
    ratio = LENGTHS.token_ratio.median
    searches = {
        kind: {
            other.name: other.request.decoding
            for other in other_searches(request, Guard(lengths=LENGTHS).findings(*pair), len)
        }
        for kind, pair in (("short", SHORT), ("long", LONG))
    }
    longer, shorter = searches["short"]["longer"], searches["long"]["shorter"]
    assert isinstance(longer, SearchConfig)
    assert isinstance(shorter, SearchConfig)
    assert longer.minimum_factor == pytest.approx(0.75 * ratio)
    assert shorter.length_factor == pytest.approx(min(SearchConfig().length_factor, 1.5 * ratio))
    assert shorter.length_margin == 5


def test_translations_of_a_faulty_length_are_counted(tmp_path: Path) -> None:
    warnings, tokenizer = LineWarnings(), tiny_tokenizers().target
    write_tiny_model(tmp_path / "model")
    limit = Translator.load(tmp_path / "model", "cpu").engine.limits.target
    for line, (text, output) in enumerate((SHORT, LONG, ("x" * 60, "y" * 70)), start=1):
        warnings.note_translation(line, text, Translation(output, 0.0, 0.0, (), tokenizer), limit, LENGTHS)
    assert warnings.counts == {
        "have translations that are much shorter than the text, so that parts may be missing": 1,
        "have translations that are much longer than the text, so that parts may be invented": 1,
    }


def test_synthetic_pairs_of_a_faulty_length_are_dropped() -> None:
    pair = ScoredPair(*SHORT, finished=True, score=-0.1)
    config = FilterConfig(max_ratio=None, copied=None)
    assert broken_rule(pair, config, LENGTHS) == "unusual_length"
    assert broken_rule(pair, config) is None
    assert broken_rule(pair, config.model_copy(update={"unusual_length": False}), LENGTHS) is None


def test_the_length_ratio_of_synthetic_pairs_is_relative_to_the_corpus() -> None:
    usual, config = LENGTHS.character_ratio, FilterConfig(unusual_length=False, repeats=None)
    dense = LENGTHS.model_copy(update={"character_ratio": usual.model_copy(update={"median": 0.2})})
    translation = ScoredPair("a dog runs in the park and sees another dog " * 20, "狗" * 176, finished=True, score=-0.1)
    assert broken_rule(translation, config, dense) is None
    assert broken_rule(translation, config, LENGTHS) == broken_rule(translation, config) == "max_ratio"
    few = dense.model_copy(update={"pairs": 10})
    assert broken_rule(translation, config, few) == "max_ratio"
    burmese = ScoredPair("yes, it is so", "ဟုတ်ပါတယ် ဒီလိုပါပဲ ခင်ဗျာ ကောင်းပါပြီ", finished=True, score=-0.1)
    assert broken_rule(burmese, config) is None  # in bytes, the translation is 4.9 times as long


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "a dog runs in the park two dogs sleep, the man sees a dog " * 8),
        ("zh", "一只狗在公园里跑，两只狗在睡觉" * 12),
        ("th", "สุนัขวิ่งในสวนสาธารณะ" * 12),
    ],
)
def test_a_line_longer_than_the_training_lines_is_divided_without_losing_text(language: str, text: str) -> None:
    division = LineDivision(language, lambda text, request: True, lambda text, request: len(text) <= 60)
    request = Request(SearchConfig())
    line = division.divide(text, request)
    assert len(line.spans) > 1
    assert all(end - begin <= 60 for begin, end in line.spans)
    covered = {index for begin, end in line.spans for index in range(begin, end)}
    assert all(text[index].isspace() for index in range(len(text)) if index not in covered)
    assert division.divide(text, replace(request, divide=False)).spans == ()
    begun = replace(request, prefix="ein")
    assert division.divide(text, begun).texts() == [(text, begun)]
    assert division.divide(text[:60], request).spans == ()


def folder_with_lengths(folder: Path, longest: int, source_language: str | None = "en") -> Path:
    """Write a tiny model whose longest training source has `longest` tokens."""
    write_tiny_model(folder)
    usual = {"median": 3, "q99": longest, "maximum": longest}
    values = {**LENGTHS.model_dump(), "source_tokens": usual}
    meta = read_meta(folder).model_copy(
        update={"lengths": {"": CorpusLengths.model_validate(values)}, "source_language": source_language}
    )
    (folder / "meta.json").write_text(dump_meta(meta), encoding="utf-8")
    return folder


def test_the_length_of_training_lines_is_asked_of_the_model_folder(tmp_path: Path) -> None:
    translator = Translator.load(folder_with_lengths(tmp_path / "model", 12), "cpu")
    text = "a dog runs in the park two dogs sleep the man sees a dog"
    ((best,),) = translator.translate_nbest([text], translator.request(beam=1))
    sources = [part.source for part in best.parts]
    assert "".join(sources) == text
    assert all(len(translator.tokenizers.source.encode(source)) <= 12 for source in sources)
    assert len(sources) > 2
    assert translator.request(guard=True).guard == Guard(
        translator.request(guard=True).guard.scripts,
        lengths=translator.training_texts.lengths(),  # type: ignore[union-attr]
    )
    assert translator.training_texts.lengths(("to:fr",)) is None


GERMAN = [
    "Der Ausschuss hat gestern beschlossen, dass die neue Brücke erst im nächsten Jahr gebaut werden soll.",
    "Viele Leute aus der Nachbarschaft sind damit überhaupt nicht einverstanden und wollen Widerspruch einlegen.",
    "Ob der Beschluss noch geändert werden kann, soll in der nächsten Sitzung des Stadtrats besprochen werden.",
]
ENGLISH = [
    "The committee decided yesterday that the new bridge should not be built before the end of next year.",
    "Many people from the neighbourhood do not agree with this at all and want to object to the decision.",
    "The town council will discuss at its next meeting whether the decision can still be changed.",
]
RUSSIAN = ["Вчера комитет решил, что новый мост следует построить только в следующем году, а не раньше."]


@pytest.mark.parametrize(
    ("language", "texts", "expected"),
    [
        ("en", ENGLISH, None),
        ("en", GERMAN, "the input is probably de"),
        (None, GERMAN, None),  # nothing to compare with
        ("de", GERMAN, None),
        ("de", ENGLISH, "the input is probably en"),
        ("en", RUSSIAN, "the input is mostly written in Cyrillic letters"),
        (None, RUSSIAN, "the input is mostly written in Cyrillic letters"),
        ("en", ["Hallo!"], None),  # too short
    ],
)
def test_a_language_that_the_model_does_not_read_is_reported_once(
    language: str | None, texts: list[str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr("dragoman.inference.translation.training_texts.warn", found.append)
    checked = TrainingTexts(Meta(step=1, source_language=language), tiny_tokenizers())
    for _ in range(2):
        checked.check_language(texts)
    assert len(found) == (expected is not None)
    assert all(message.startswith(str(expected)) for message in found)


def test_unknown_tokens_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.text.tokenizers import train_tokenizers

    found: list[str] = []
    monkeypatch.setattr("dragoman.inference.translation.training_texts.warn", found.append)
    words = TextConfig.model_validate({"subword": {"kind": "word", "min_frequency": 1}})
    tokenizers = train_tokenizers(words, ENGLISH, ENGLISH)
    TrainingTexts(Meta(step=1), tokenizers).check_language(ENGLISH)
    assert found == []
    TrainingTexts(Meta(step=1), tokenizers).check_language(GERMAN)
    assert "of the tokens of the input are not in the model's source vocabulary" in found[0]


def test_files_and_lists_in_another_language_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_with_lengths(tmp_path / "model", 100)
    (tmp_path / "in").write_text("\n".join(GERMAN) + "\n", encoding="utf-8")
    translate_file(folder, tmp_path / "in", tmp_path / "out", beam=1, device="cpu")
    assert capsys.readouterr().err.count("the input is probably de") == 1
    translator = Translator.load(folder, "cpu")
    translator.translate(GERMAN, beam=1)
    translator.translate(GERMAN, beam=1)
    assert capsys.readouterr().err.count("the input is probably de") == 1
