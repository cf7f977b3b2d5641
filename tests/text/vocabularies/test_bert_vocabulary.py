"""The vocabulary of kind bert: normalisation, splitting, offsets, files, learning."""

import json
from pathlib import Path
from typing import Any

import pytest
from bert_folders import hard_lines
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError, ModelError
from dragoman.inference.prediction.heads.inputs import encode_words
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.vocabularies.bert import BertTokenizer, BertWordPieceConfig
from dragoman.text.vocabularies.union import load_tokenizer

LINES = [
    "A dog runs over the greeen grass, doesn't it?",
    "Zwei Hunde 中国 schlafen; 😀 12 Katzen!",
    "<s> [CLS] mask",
] * 3


def learn(**changes: Any) -> BertTokenizer:
    return BertWordPieceConfig(**{"size": 160, **changes}).learn(LINES)


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizer:
    return learn().with_tags(["mask"])


def pieces(tokenizer: BertTokenizer, text: str) -> str:
    return tokenizer.decode(tokenizer.encode(text))


def test_texts_are_normalised_as_the_settings_say() -> None:
    assert pieces(learn(), "GRÉEEN\x07 dog中国!") == "greeen dog 中 国 !"
    assert pieces(learn(split_chinese=False), "dog 中国") == "dog 中国"
    accents = BertWordPieceConfig(size=90, lowercase=True, strip_accents=False).learn(["É é"] * 3)
    assert accents.decode(accents.encode("É")) == "é"
    cased = BertWordPieceConfig(size=90, lowercase=False).learn(["É A a"] * 3)
    assert cased.decode(cased.encode("É A")) == "É A"
    assert cased.normaliser["lowercase"] is False and cased.normaliser["strip_accents"] is None


def test_unknown_words_are_one_symbol(tokenizer: BertTokenizer) -> None:
    assert tokenizer.encode("dogж" + "ж" * 5) == [UNK]
    assert tokenizer.encode("d" * 101) == [UNK] and UNK not in tokenizer.encode("d" * 100)


def test_no_text_reaches_special_symbols_and_tags(tokenizer: BertTokenizer) -> None:
    first_tag = tokenizer.size - 1
    assert tokenizer.symbols[:4] == SPECIAL_SYMBOLS and tokenizer.symbols[first_tag] == "<mask>"
    for line in (*SPECIAL_SYMBOLS, "<mask>", "[MASK]", "a<s>b", "[CLS][SEP]", *hard_lines(300)):
        assert all(number == UNK or len(SPECIAL_SYMBOLS) <= number < first_tag for number in tokenizer.encode(line))


@given(
    text=st.one_of(
        st.text(), st.lists(st.sampled_from([*LINES, " ", "\x00", "é", "e\u0301", "中", "ﬁ", "İ"])).map("".join)
    )
)
def test_words_and_spans_refer_to_the_text(text: str) -> None:
    tokenizer = _LEARNED
    ids = tokenizer.encode(text)
    indices, words = tokenizer.words(text)
    spans = tokenizer.spans(text)
    assert len(indices) == len(spans) == len(ids)
    assert "".join(words) == text
    assert indices == sorted(indices) and set(indices) <= set(range(len(words)))
    for index, (start, end) in zip(indices, spans, strict=True):
        assert start < end <= len(text)
        begin = sum(map(len, words[:index]))
        assert begin <= start and end <= begin + len(words[index])


_LEARNED = learn()


def test_a_span_encodes_to_the_tokens_of_its_word(tokenizer: BertTokenizer) -> None:
    for line in [*LINES, *hard_lines(200, seed=3)]:
        indices, _ = tokenizer.words(line)
        ids, spans = tokenizer.encode(line), tokenizer.spans(line)
        for index in set(indices):
            places = [place for place, each in enumerate(indices) if each == index]
            start, end = spans[places[0]]
            assert tokenizer.encode(line[start:end]) == [ids[place] for place in places]


def test_words_of_a_sentence_are_encoded_as_in_the_text(tokenizer: BertTokenizer) -> None:
    words = ["A", "dog", "\x07", "doesn't", "中国", "😀", "12"]
    encoded = encode_words(tokenizer, [words])[0]
    assert encoded[2] == [UNK]
    kept = [ids for word, ids in zip(words, encoded, strict=True) if word != "\x07"]
    assert [number for ids in kept for number in ids] == tokenizer.encode(" ".join(words))


def test_learning_is_deterministic_and_files_restore_the_tokenizer(tmp_path: Path) -> None:
    first = learn(lowercase=False).with_tags(["mask", "to:de"])
    assert first.document() == learn(lowercase=False).with_tags(["mask", "to:de"]).document()
    first.original_ids = (7, 5, 6, 9, 8)
    first.save(tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert isinstance(loaded, BertTokenizer) and loaded.original_ids == (7, 5, 6, 9, 8)
    assert loaded.document() == first.document() and loaded.encode_batch(LINES) == first.encode_batch(LINES)


@pytest.mark.parametrize(
    "changes",
    [
        {"original_ids": [1, 2, 3]},
        {"original_ids": [1, 2, 3, 3]},
        {"original_ids": [1, 2, 3, -1]},
        {"original_ids": "1234"},
        {"normalizer": None},
        {"model": {}},
    ],
)
def test_damaged_files_are_rejected(tmp_path: Path, changes: dict[str, Any]) -> None:
    document = {**json.loads(learn().document()), **changes}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match="damaged"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_broken_text_is_an_error(tokenizer: BertTokenizer) -> None:
    for call in (
        lambda: tokenizer.encode("ab\ud800"),
        lambda: tokenizer.words("ab\ud800"),
        lambda: tokenizer.spans("\ud800"),
    ):
        with pytest.raises(DataError, match="lone surrogate"):
            call()
