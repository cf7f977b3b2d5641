"""The dictionary baseline: exact on a toy, equal to statistical translation, and words counted as by brute force."""

from functools import cache
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_language import PAIRS, WORDS, sentence

from dragoman.base.errors import DataError
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.train import train
from dragoman.tasks.verdict.dictionary import WordDictionary


@cache
def learned() -> WordDictionary:
    return WordDictionary.learn(PAIRS, threads=1)


@given(st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=9))
@settings(max_examples=30)
def test_toy_language_is_translated_exactly(words: list[str]) -> None:
    source, target = sentence(words)
    assert learned().translate([source]) == [target]


def test_unknown_words_are_copied_and_case_is_ignored() -> None:
    assert learned().translate(["Dog sees zebra!", "", "zebra"]) == ["Hund sieht zebra!", "", "zebra"]


def test_translations_equal_those_of_statistical_translation(tmp_path: Path) -> None:
    corpus = tmp_path / "pairs.tsv"
    corpus.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    recipe = {
        "task": {"kind": "statistical_translation"},
        "data": {"train": {"pairs": str(corpus)}, "valid": {"pairs": str(corpus)}, "cleaning": {"enabled": False}},
        "model": {"method": {"kind": "dictionary"}},
        "threads": 1,
        "out": str(tmp_path / "model"),
    }
    translator = Translator.load(train(recipe, quiet=True).folder)
    sources = [*(source for source, _ in PAIRS), "Two zebra, runs."]
    assert learned().translate(sources) == translator.translate(sources)


def brute_force(corpus: list[str], texts: list[str]) -> tuple[int, ...]:
    def words(text: str) -> list[str]:
        return regex.findall(r"[\p{L}\p{M}\p{N}]+", text.casefold())

    known = {word for text in corpus for word in words(text)}
    running = [word for text in texts for word in words(text)]
    lines = sum(all(word in known for word in words(text)) for text in texts)
    types = set(running)
    return len(types), len(types & known), len(running), sum(word in known for word in running), len(texts), lines


@given(st.lists(st.lists(st.sampled_from([*WORDS, "Zebra", "ZEBRA", "x", "11"]), max_size=5), min_size=1, max_size=4))
@settings(max_examples=50)
def test_seen_words_equal_those_counted_by_brute_force(lines: list[list[str]]) -> None:
    texts = [f"“{' '.join(words)}”, ({', '.join(words)})." for words in lines]
    seen = learned().seen_words(0, texts)
    found = seen.types, seen.seen_types, seen.words, seen.seen_words, seen.lines, seen.seen_lines
    assert found == brute_force([source for source, _ in PAIRS], texts)


def test_corpus_without_usable_pairs_is_an_error() -> None:
    with pytest.raises(DataError, match="1 to 100 words"):
        WordDictionary.learn([("word " * 101, "Wort")], threads=1)
