"""Any Unicode text survives tokenisation, with and without dropout."""

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig

CORPUS = [
    "A dog runs over the green grass .",
    "Ein Hund läuft über das grüne Gras.",
    "Der zweite Hund schläft; 1234 Hunde <s> laufen </s>!",
    "कुत्ता घास पर दौड़ता है। 犬が草の上を走る。 😀👍🏽",
] * 5
TEXT = st.one_of(
    st.text(),
    st.text(alphabet=" ab\tü.\n\u2028▁😀\u0301\u200d1<s>/"),
    st.lists(st.sampled_from([*CORPUS[:4], *SPECIAL_SYMBOLS, " ", "  ", "▁", "\0", "Hund", "grü"])).map("".join),
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    config = TextConfig(subword=BPEConfig(size=450, min_frequency=1))
    return train_tokenizers(config, CORPUS, CORPUS).source


@settings(max_examples=100)
@given(text=TEXT)
@example("")
@example(" ")
@example("  two  blanks  ")
@example("\r\n\t\x00\x85\u2028\u2029\ufeff")
@example("▁a <s> </s> <pad> <unk> Ġ")
@example("e\u0301 👨‍👩‍👧‍👦 🏳️‍🌈 \U0010ffff")
def test_round_trip(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)
    assert all(len(SPECIAL_SYMBOLS) <= number < tokenizer.size for number in ids)
    assert len(tokenizer.pieces(ids)) == len(ids)


@settings(max_examples=100)
@given(text=TEXT, seed=st.integers(0, 2**32))
def test_without_dropout_resampling_equals_the_library(tokenizer: Tokenizer, text: str, seed: int) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.resample(ids, np.random.default_rng(seed), 0.0) == ids


@settings(max_examples=100)
@given(text=TEXT, seed=st.integers(0, 2**32), dropout=st.floats(0.01, 0.99))
def test_dropout_keeps_the_text_and_follows_its_seed(
    tokenizer: Tokenizer, text: str, seed: int, dropout: float
) -> None:
    ids = tokenizer.encode(text)
    first = tokenizer.resample(ids, np.random.default_rng(seed), dropout)
    assert tokenizer.decode(first) == unicodedata.normalize("NFC", text)
    assert tokenizer.resample(ids, np.random.default_rng(seed), dropout) == first


@settings(max_examples=100)
@given(ids=st.lists(st.integers(0, 300)))
def test_any_ids_can_be_decoded_and_shown(tokenizer: Tokenizer, ids: list[int]) -> None:
    assert isinstance(tokenizer.decode(ids), str)
    assert len(tokenizer.pieces(ids)) == len(ids)


def test_dropout_changes_the_pieces(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(CORPUS[0])
    rng = np.random.default_rng(1)
    splits = {tuple(tokenizer.resample(ids, rng, 0.1)) for _ in range(50)}
    assert tuple(ids) in splits
    assert len(splits) > 5
