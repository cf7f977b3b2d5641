"""Held-out sets share no sentence with training or with each other, and every pair is in one set or counted."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.sentence_keys import SentenceKeys, normalise, sentence_key
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_pairs, read_sides
from dragoman.data.held_out import split
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.sets import HeldOutSets, hold_out
from dragoman.data.preparation.prepare import prepare
from dragoman.tasks.corpora.split import split_data
from dragoman.text.tokenizers import TextConfig

Pairs = Sequence[tuple[str, str]]
RULES = CleaningConfig(wrong_script=False, max_ratio=None)
WORD = TextConfig.model_validate({"subword": {"kind": "word", "min_frequency": 1}})
SMALL = HeldOutConfig(valid=2, test=3)

sentences = st.builds(
    lambda words, end: " ".join(words) + end,
    st.lists(st.sampled_from(["a", "B", "b", "1", "22", "ß", "SS", "é", "e\u0301", "-"]), min_size=1, max_size=3),
    st.sampled_from(["", ".", "!", " ?"]),
)
corpora = st.lists(st.tuples(sentences, sentences), min_size=25, max_size=60)


def write(path: Path, pairs: Pairs) -> CorpusConfig:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return CorpusConfig(pairs=path)


def numbered(count: int, first: int = 0) -> list[tuple[str, str]]:
    """Return pairs without near-duplicates: numbers in letters."""
    names = ("".join(chr(97 + int(digit)) for digit in f"{number:05}") for number in range(first, first + count))
    return [(f"source {name}", f"target {name}") for name in names]


def held_out(folder: Path, *corpora: CorpusConfig, config: HeldOutConfig = SMALL, **named: Any) -> HeldOutSets:
    return hold_out(corpora, config, lambda _: RULES, folder, **named)


def texts(sets: Sequence[CorpusConfig]) -> list[tuple[str, str]]:
    return [pair for each in sets for pair in zip(*read_sides(each), strict=True)]


@settings(max_examples=15, deadline=None)
@given(pairs=corpora, seed=st.integers(0, 3))
def test_no_sentence_is_in_two_sets_and_every_pair_is_in_one_or_counted(pairs: Pairs, seed: int) -> None:
    with TemporaryDirectory() as name:
        corpus = write(Path(name) / "corpus.tsv", pairs)
        sizes = HeldOutConfig(valid=2, test=3, seed=seed)
        try:
            result = split_data(corpus, Path(name) / "out", sizes, RULES, quiet=True)
        except DataError:  # all pairs share a sentence
            return
        parts = {}
        for part in ("train", "valid", "test"):
            sides = (Path(name, "out", f"{part}.{side}").read_text().split("\n")[:-1] for side in ("source", "target"))
            parts[part] = list(zip(*sides, strict=True))
    assert [len(parts[part]) for part in parts] == [result.train, result.valid, result.test]
    assert result.train + result.valid + result.test + result.alike + result.incomplete == len(pairs)
    assert result.valid >= 1
    assert result.test >= 1
    assert set(parts["valid"] + parts["test"]) <= set(pairs)
    for side in (0, 1):
        for key in (normalise, sentence_key):
            seen = [{key(pair[side]) for pair in parts[part]} for part in parts]
            assert seen[0].isdisjoint(seen[1])
            assert seen[0].isdisjoint(seen[2])
            assert seen[1].isdisjoint(seen[2])
    assert len({sentence_key(source) for source, _ in parts["test"]}) == result.test


@settings(max_examples=8, deadline=None)
@given(pairs=corpora)
def test_training_keeps_what_the_split_keeps(pairs: Pairs) -> None:
    with TemporaryDirectory() as name:
        corpus = write(Path(name) / "corpus.tsv", pairs)
        try:
            sets = held_out(Path(name), corpus)
            keys = sets.keys()
            prepared = prepare(corpus, RULES, WORD, Path(name), workers=0, held_out=keys)
        except DataError:
            return
        report = prepared.reports[0]
        dropped = {line for lines in report.dropped.values() for line in lines.tolist()}
        kept = [pair.texts for pair in read_pairs(corpus) if pair.line not in dropped]
        assert len(kept) == len(prepared.dataset)
        assert not any(keys.contain(*pair) for pair in kept)
        assert report.kept + sum(report.counts.values()) == len(pairs)
        assert report.counts["held_out"] >= sum(sets.sizes)


def test_the_same_seed_selects_the_same_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "CANDIDATES", 60)  # so that the candidates are a sample
    corpus = write(tmp_path / "corpus.tsv", numbered(200))
    selected = [
        texts(held_out(tmp_path / str(number), corpus, config=SMALL.model_copy(update={"seed": seed})).test)
        for number, seed in enumerate((1, 1, 2))
    ]
    assert selected[0] == selected[1] != selected[2]
    assert len(selected[0]) == 3


def test_pairs_without_near_duplicates_are_preferred(tmp_path: Path) -> None:
    repeated = [(f"the same sentence {number}", f"target {number}!") for number in range(200)]
    sets = held_out(tmp_path, write(tmp_path / "corpus.tsv", repeated + numbered(20)))
    assert set(texts((*sets.valid, *sets.test))) <= set(numbered(20))


def test_pairs_that_cleaning_drops_are_not_held_out(tmp_path: Path) -> None:
    empty = [(f"source {source}", " ") for source, _ in numbered(30, 100)]
    long = [(source, f"{target} {'word ' * 300}") for source, target in numbered(30, 200)]
    sets = held_out(tmp_path, write(tmp_path / "corpus.tsv", empty + long + numbered(6)))
    assert set(texts((*sets.valid, *sets.test))) <= set(numbered(6))


def test_sets_are_held_out_in_proportion_and_by_language(tmp_path: Path) -> None:
    names = [(90, "de"), (30, "de"), (60, "fr")]
    corpora = [
        write(tmp_path / f"{number}.tsv", numbered(count, 1000 * number)).model_copy(
            update={"target_language": language, "tags": ("formal",)}
        )
        for number, (count, language) in enumerate(names)
    ]
    sets = held_out(tmp_path, *corpora, config=HeldOutConfig(valid=12, test=6))
    assert [(each.target_language, each.tags) for each in sets.valid] == [("de", ("formal",)), ("fr", ("formal",))]
    assert [len(texts([each])) for each in (*sets.valid, *sets.test)] == [8, 4, 4, 2]
    german = texts(sets.valid[:1])
    assert [len({*german} & {*numbered(90, 1000 * number)}) for number in range(3)] == [6, 2, 0]


def test_a_named_set_is_not_held_out_and_shares_no_sentence(tmp_path: Path) -> None:
    corpus, named = write(tmp_path / "corpus.tsv", numbered(40)), write(tmp_path / "test.tsv", numbered(30))
    sets = held_out(tmp_path, corpus, named=((), (named,)))
    assert sets.sizes == Sizes(2, 0)
    assert set(texts(sets.valid)).isdisjoint(numbered(30))


def test_stored_sets_survive_tabs_and_copies(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f'{{"source": "{s}\\tx", "target": "{t}"}}\n' for s, t in numbered(40)))
    sets = held_out(tmp_path, CorpusConfig(pairs=path))
    assert all(source.endswith("\tx") for source, _ in texts(sets.valid))
    assert texts(sets.copy(tmp_path / "run").test) == texts(sets.test)
    assert held_out(tmp_path, CorpusConfig(pairs=path)) == sets
    (tmp_path / "run" / "sets.json").write_text("{}")
    with pytest.raises(DataError, match="is damaged"):
        HeldOutSets.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [(20, (2, 2)), (200, (20, 20)), (500, (50, 50)), (1000, (50, 50)), (4000, (200, 200)), (10**6, (1000, 2000))],
)
def test_default_sizes(pairs: int, expected: tuple[int, int]) -> None:
    assert HeldOutConfig().sizes(pairs, "corpus") == expected


def test_unsuitable_corpora_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only 19 complete sentence pairs"):
        held_out(tmp_path, write(tmp_path / "small.tsv", numbered(19)))
    with pytest.raises(ConfigError, match="more than half of the 40 pairs"):
        held_out(tmp_path, write(tmp_path / "corpus.tsv", numbered(40)), config=HeldOutConfig(valid=20, test=1))
    with pytest.raises(DataError, match="too few pairs with sentences of their own"):
        held_out(tmp_path, write(tmp_path / "same.tsv", [("the same", f"t {n}") for n in range(40)]))


@given(sentences, sentences)
def test_equal_normalised_sentences_have_equal_keys(first: str, second: str) -> None:
    assert normalise(first) != normalise(second) or sentence_key(first) == sentence_key(second)
    assert sentence_key(f" {first.upper().lower()} a!") == sentence_key(f"{first.upper()}A")


def test_keys_are_compared_side_by_side() -> None:
    keys = SentenceKeys.of([("Room 12.", "Zimmer 12.")])
    assert keys.contain("room 7", "x")
    assert keys.contain("x", "ZIMMER 1 !")
    assert not keys.contain("Zimmer 12.", "Room 12.")
    assert sentence_key("?") != sentence_key("!")
