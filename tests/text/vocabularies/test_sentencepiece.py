"""Vocabularies of kind sentencepiece: learned ones, files, damage, tags and codes, two languages in one vocabulary."""

import json
import pickle
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.vocabularies.sentencepiece import SentencePieceTokenizer, split_language_code, tag_of
from dragoman.text.vocabularies.union import load_tokenizer

pytest.importorskip("sentencepiece")

LINES = [
    "A dog runs over the green grass .",
    "Zwei Hunde (aus Köln) schlafen; 12 Katzen auch!",
    "犬が草の上を走る。",
] * 4


def learn(lines: list[str] = LINES, size: int = 90) -> SentencePieceTokenizer:
    text = TextConfig.model_validate({"subword": {"kind": "sentencepiece", "size": size}})
    tokenizer = train_tokenizers(text, lines, []).source
    assert isinstance(tokenizer, SentencePieceTokenizer)
    return tokenizer


@pytest.fixture(scope="module")
def learned() -> SentencePieceTokenizer:
    return learn()


def test_normalised_text_of_known_characters_is_kept(learned: SentencePieceTokenizer) -> None:
    assert learned.size <= 90
    assert learned.pieces(range(4)) == list(SPECIAL_SYMBOLS)
    for line in LINES:
        ids = learned.encode(line)
        assert min(ids) >= len(SPECIAL_SYMBOLS)
        assert learned.decode(ids) == line
        assert learned.decode([1, *ids, 2, 0]) == line
    assert learned.decode(learned.encode("  A　dog  runs ")) == "A dog runs"
    assert learn().document() == learned.document()


@given(st.text())
def test_unknown_pieces_are_words_that_can_be_restored(learned: SentencePieceTokenizer, text: str) -> None:
    ids = learned.encode(text)
    places, words = learned.words(text)
    assert places == list(range(len(ids)))
    unknown = [word for word, number in zip(words, ids, strict=True) if number == UNK]
    assert learned.decode(ids, unknown) == "".join(words).strip()
    assert isinstance(learned.pieces(ids), list)


def test_special_symbols_cannot_be_spelt(learned: SentencePieceTokenizer) -> None:
    for symbol in SPECIAL_SYMBOLS:
        assert all(number >= UNK for number in learned.encode(f"a{symbol} {symbol}"))


def test_files_and_pickles_restore_it(learned: SentencePieceTokenizer, tmp_path: Path) -> None:
    other = SentencePieceTokenizer(
        learned.model, learned.entries[::-1], joint=True, tidy=True, original_ids=[7, 8, 9, 3]
    )
    for tokenizer in (learned, learned.with_tags(["to:de", "bt"]), other):
        tokenizer.save(tmp_path / "tokenizer.json")
        for again in (load_tokenizer(tmp_path / "tokenizer.json"), pickle.loads(pickle.dumps(tokenizer))):
            assert isinstance(again, SentencePieceTokenizer)
            assert again.document() == tokenizer.document()
            assert again.fingerprint == tokenizer.fingerprint
            assert again.encode_batch(LINES) == tokenizer.encode_batch(LINES)
            assert (again.joint, again.tidy, again.original_ids) == (
                tokenizer.joint,
                tokenizer.tidy,
                tokenizer.original_ids,
            )
    assert other.decode(other.encode("A dog .")) == "A dog."


@pytest.mark.parametrize(
    "damage",
    [
        {"model": "no base64"},
        {"model": "Z2FyYmFnZQ=="},
        {"model": ""},
        {"model": 3},
        {"entries": "abc"},
        {"entries": [3]},
        {"entries": ["a", "a"]},
        {"original_ids": [1, 2]},
        {"original_ids": ["a"] * 4},
        {"original_ids": [7, 7, 7, 1]},
        {"original_ids": [0, 1, 2, 10**9]},
        {"joint": "yes"},
    ],
    ids=str,
)
def test_damaged_files_are_refused(learned: SentencePieceTokenizer, tmp_path: Path, damage: dict[str, object]) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(learned.document()), **damage}))
    with pytest.raises(ModelError, match="damaged"):
        load_tokenizer(path)


def test_codes_of_languages_are_tags(learned: SentencePieceTokenizer) -> None:
    tagged = learned.with_tags(["to:de", "bt", "to:pt_BR"])
    first, rest = learned.size, learned.encode(" dog")
    assert tagged.encode(">>de<< dog") == [first, *rest] == [*tagged.tag_ids(["to:de"]), *rest]
    assert tagged.encode(">>pt_BR<< dog") == [first + 2, *rest]
    for unknown in (">>bt<< dog", ">>fr<< dog", ">><< dog"):
        assert tagged.encode(unknown) == [UNK, *rest]
    assert tagged.encode("dog >>de<<")[-1] != first
    assert tagged.words(">>de<< dog")[1][0] == ">>de<<"
    assert tagged.decode([first, *rest]) == "dog"
    assert (split_language_code(">>de dog"), split_language_code("a>>de<<")) == (("", ">>de dog"), ("", "a>>de<<"))
    assert [tag_of(each) for each in (">>de<<", ">><<", ">>a b<<", "de", ">>de", ">>de<<x")] == ["to:de", *[None] * 5]


def test_two_languages_share_entries_and_not_the_model(learned: SentencePieceTokenizer, tmp_path: Path) -> None:
    english, german = learn(LINES[:1] * 9, 40), learn(LINES[1:2] * 9, 60)
    entries = sorted({*english.entries, *german.entries})
    pair = Tokenizers(*(SentencePieceTokenizer(each.model, entries, joint=True) for each in (english, german)))
    assert pair.shared and not pair.has_single_tokenizer
    tagged = pair.with_tags(["to:de"])
    assert tagged.source.size == tagged.target.size == len(entries) + 5
    tagged.save(tmp_path)
    again = Tokenizers.load(tmp_path)
    assert again.shared and again.fingerprint == tagged.fingerprint
    apart = Tokenizers(english, german)
    assert not apart.shared and apart.with_tags(["bt"]).target.tags == ()


def test_unlearnable_vocabularies_are_reported() -> None:
    with pytest.raises(ConfigError, match=r"cannot learn 6 entries"):
        learn(LINES, 6)
    with pytest.raises(DataError, match="no text"):
        learn([" ", ""])
    with pytest.raises(DataError, match="lone surrogate"):
        learn(["a \ud800"])


def test_without_the_library_the_extra_is_named(
    learned: SentencePieceTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned.save(tmp_path / "tokenizer.json")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ConfigError, match=r'pip install "dragoman\[hf\]"'):
        load_tokenizer(tmp_path / "tokenizer.json")
    with pytest.raises(ConfigError, match=r'pip install "dragoman\[hf\]"'):
        learn()
