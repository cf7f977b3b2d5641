"""Tokenizers: special symbols, display, files, determinism."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dragoman.base.errors import DataError, ModelError
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig
from dragoman.text.vocabularies.bpe_dropout import MergeTable
from dragoman.text.vocabularies.union import load_tokenizer

SOURCES = ["Nikitin sleeps .", "Niki sleeps in tin .", "the tin , the ki and </s> and <s> </s>"] * 20
TARGETS = ["Nikitin schläft.", "Die schläft im Zinn.", "das Zinn </s></s></s>"] * 20


def train(size: int = 320, shared: bool = True, dropout: float = 0.0) -> Tokenizers:
    return train_tokenizers(TextConfig(subword=BPEConfig(size=size, dropout=dropout), shared=shared), SOURCES, TARGETS)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train().source


def test_special_symbols_have_the_agreed_ids_and_no_text_reaches_them(tokenizer: Tokenizer) -> None:
    assert [tokenizer.pieces([number])[0] for number in range(4)] == list(SPECIAL_SYMBOLS)
    for symbol in SPECIAL_SYMBOLS:
        for text in (symbol, f"a{symbol}b", f" {symbol} "):
            assert min(tokenizer.encode(text)) >= len(SPECIAL_SYMBOLS)
            assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_ids_are_skipped_in_decoding(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([1, *tokenizer.encode("the tin"), 2, 0, 0, 3]) == "the tin"


def test_a_word_has_the_same_ids_at_the_start_and_inside(tokenizer: Tokenizer) -> None:
    word = tokenizer.encode("tin")
    assert tokenizer.encode("tin tin") == word + word


def test_display_marks_continued_pieces() -> None:
    tokenizer = train(size=270).source  # too few merges for whole words
    shown = tokenizer.pieces(tokenizer.encode("Nikitin."))
    assert shown[-1] == "."
    assert not shown[-2].endswith("@@")
    assert all(piece.endswith("@@") for piece in shown[:-2])
    assert "".join(piece.removesuffix("@@") for piece in shown).lstrip("␣") == "Nikitin."


def test_display_shows_incomplete_characters_as_bytes_and_one_string_per_id(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a 😀\t\u2028")
    shown = tokenizer.pieces(ids)
    assert len(shown) == len(ids)
    assert [piece.removesuffix("@@") for piece in shown[-8:-4]] == ["<F0>", "<9F>", "<98>", "<80>"]
    assert not shown[-5].endswith("@@")
    assert "<09>@@" in shown  # tab and line separator are one word of blanks
    assert len(tokenizer.pieces(ids[3:])) == len(ids) - 3


def test_training_is_deterministic(tmp_path: Path) -> None:
    for name in "ab":
        train().source.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_size_is_reached_unless_the_corpus_is_too_small() -> None:
    assert train(size=300).source.size == 300
    assert 300 < train(size=5000).source.size < 1000


@pytest.mark.parametrize("shared", [True, False])
def test_saving_and_loading(tmp_path: Path, shared: bool) -> None:
    tokenizers = train(shared=shared)
    tokenizers.save(tmp_path)
    loaded = Tokenizers.load(tmp_path)
    assert loaded.shared == tokenizers.shared == shared
    assert loaded.fingerprint == tokenizers.fingerprint
    assert loaded.target.encode("Zinn schläft") == tokenizers.target.encode("Zinn schläft")


def test_separate_vocabularies_differ() -> None:
    tokenizers = train(shared=False)
    assert tokenizers.source.fingerprint != tokenizers.target.fingerprint


def test_dropout_changes_neither_fingerprint_nor_encoding() -> None:
    plain, dropping = train(), train(dropout=0.5)
    assert plain.fingerprint == dropping.fingerprint
    assert plain.source.encode("the tin") == dropping.source.encode("the tin")
    assert dropping.source.dropout == 0.5


def test_a_folder_with_one_of_two_tokenizers_is_rejected(tmp_path: Path) -> None:
    train(shared=False).save(tmp_path)
    (tmp_path / "tokenizer.target.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.target\.json"):
        Tokenizers.load(tmp_path)


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "other specials", "other kind", "missing"])
def test_damaged_files_are_rejected_by_name(tmp_path: Path, tokenizer: Tokenizer, damage: str) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "garbage":
        path.write_bytes(bytes(range(256)))
    elif damage == "empty":
        path.write_text("{}")
    elif damage == "other specials":
        vocabulary = document["model"]["vocab"]
        vocabulary["</s>"], vocabulary["<s>"] = 1, 2
        path.write_text(json.dumps(document))
    elif damage == "other kind":
        document["model"] = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
        path.write_text(json.dumps(document))
    else:
        path.unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_tokenizer(path)


def test_lone_surrogates_are_an_error_with_their_position(tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match=r"Text 2 .*U\+D800.* character 3"):
        tokenizer.encode_batch(["fine", "ab\ud800"])


def test_dropout_draws_from_the_distribution_of_the_paper() -> None:
    letters = "abcd"
    merges = [("a", "b"), ("c", "d"), ("b", "c"), ("ab", "cd"), ("bc", "d"), ("a", "bcd")]
    symbols = dict.fromkeys([*letters, *(left + right for left, right in merges)])
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    names = list(vocabulary)
    table, rate, draws = MergeTable(vocabulary, merges), 0.3, 20_000
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    rng = np.random.default_rng(0)

    def naive(word: list[str]) -> str:  # algorithm 1, each possible merge with its own draw
        while True:
            possible = [(ranks[pair], place) for place, pair in enumerate(pairwise(word)) if pair in ranks]
            alive = [candidate for candidate in possible if rng.random() >= rate]
            if not alive:
                return " ".join(word)
            place = min(alive)[1]
            word[place : place + 2] = [word[place] + word[place + 1]]

    expected = Counter(naive(list(letters)) for _ in range(draws))
    found: Counter[str] = Counter()
    for _ in range(draws // 2):  # two words per call: random numbers of one must not affect the other
        ids = table.segment([letters, letters], rate, rng)
        words, word = [], ""
        for number in ids:
            word = f"{word} {names[number]}".strip()
            if word.replace(" ", "") == letters:
                words.append(word)
                word = ""
        found.update(words)
    assert found.total() == draws
    for split in expected | found:
        deviation = (2 * max(expected[split], found[split], 1)) ** 0.5
        assert abs(expected[split] - found[split]) < 5 * deviation + 5, split
