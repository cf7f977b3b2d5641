"""All kinds of vocabularies: lossless encoding, special symbols, determinism, files, words."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from learned_vocabularies import KINDS, LINES, TEXT, learn

from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.base.settings.load import load_settings, parse_settings
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.vocabularies.subword_nmt import SubwordNMTConfig, read_codes
from dragoman.text.vocabularies.union import load_tokenizer

LOSSLESS = ("bpe", "gpt2", "unigram")


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    return {kind: learn(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_known_entries_is_encoded_without_loss(learned: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = learned[kind]
    assert tokenizer.kind == kind
    for line in LINES:
        ids = tokenizer.encode(line)
        assert UNK not in ids
        assert min(ids) >= len(SPECIAL_SYMBOLS)
        assert tokenizer.decode(ids) == line
        assert len(tokenizer.pieces(ids)) == len(ids)
    assert tokenizer.encode_batch(LINES) == [tokenizer.encode(line) for line in LINES]


@pytest.mark.parametrize("kind", KINDS)
def test_special_symbols_are_first_and_no_text_reaches_them(learned: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = learned[kind]
    assert [tokenizer.pieces([number])[0] for number in range(4)] == list(SPECIAL_SYMBOLS)
    for symbol in SPECIAL_SYMBOLS:
        for text in (symbol, f"a{symbol}b", f"{symbol}{symbol} {symbol}"):
            assert all(number == UNK or number >= len(SPECIAL_SYMBOLS) for number in tokenizer.encode(text))
    ids = tokenizer.encode(LINES[0])
    assert tokenizer.decode([1, *ids, 2, 0, 0]) == LINES[0]


@settings(max_examples=100)
@given(text=TEXT, kind=st.sampled_from(KINDS))
@example(text="##a a## a#", kind="wordpiece")
@example(text="<0xE2>▁ <0xE2>", kind="unigram")
def test_only_unknowns_are_lost(learned: dict[str, Tokenizer], text: str, kind: str) -> None:
    tokenizer = learned[kind]
    ids = tokenizer.encode(text)
    places, words = tokenizer.words(text)
    assert len(places) == len(ids) == len(tokenizer.pieces(ids))
    unknown = [words[place] for place, number in zip(places, ids, strict=True) if number == UNK]
    if kind in LOSSLESS:
        assert not unknown
        assert tokenizer.lossless
    # with unknown words restored, every text is complete, except for blanks in the kind that splits at them
    text = unicodedata.normalize("NFC", text)
    expected = " ".join(word for word in text.strip("\r\n ").split(" ") if word) if kind == "subword_nmt" else text
    assert tokenizer.decode(ids, unknown) == expected


@settings(max_examples=100)
@given(ids=st.lists(st.integers(0, 99)), kind=st.sampled_from(KINDS))
def test_any_ids_are_decoded_and_shown(learned: dict[str, Tokenizer], ids: list[int], kind: str) -> None:
    tokenizer = learned[kind]
    ids = [number % tokenizer.size for number in ids]
    assert isinstance(tokenizer.decode(ids), str)
    assert len(tokenizer.pieces(ids)) == len(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_learning_is_deterministic_and_files_restore_the_tokenizer(tmp_path: Path, kind: str) -> None:
    first, second = learn(kind), learn(kind)
    assert first.document() == second.document()
    Tokenizers(first, first).save(tmp_path)
    loaded = Tokenizers.load(tmp_path).source
    assert type(loaded) is type(first)
    assert loaded.fingerprint == first.fingerprint
    assert loaded.encode_batch(LINES) == first.encode_batch(LINES)
    assert loaded.document() == first.document()


def test_each_kind_has_its_own_fingerprint(learned: dict[str, Tokenizer]) -> None:
    assert len({tokenizer.fingerprint for tokenizer in learned.values()}) == len(KINDS)
    assert learned["word"].fingerprint != learn("word", size=20).fingerprint


def test_words_that_are_rare_or_beyond_the_size_are_unknown() -> None:
    tokenizer = learn("word", ["a b c", "a b", "a d d"], size=6, min_frequency=2)
    assert tokenizer.pieces(tokenizer.encode("a b c d e")) == ["a", "b", "<unk>", "<unk>", "<unk>"]
    assert tokenizer.size == 6
    rare = learn("word", ["a b c", "a b", "a d d"], size=100, min_frequency=3)
    assert rare.pieces(rare.encode("a b d")) == ["a", "<unk>", "<unk>"]


def test_words_include_the_preceding_space() -> None:
    tokenizer = learn("word", ["an ox (ox an), an ox"], min_frequency=1)
    ids = tokenizer.encode("(ox ox")
    assert tokenizer.pieces(ids)[1:] == ["ox", "ox"]
    assert ids[1] != ids[2]
    assert tokenizer.decode(tokenizer.encode("(ox an), an ox")) == "(ox an), an ox"
    assert tokenizer.decode(tokenizer.encode("ox(ox")) == "oxox"  # a bracket occurred after a blank only


def test_rare_characters_are_unknown() -> None:
    tokenizer = learn("character", ["aab", "ab "], min_frequency=2)
    assert tokenizer.pieces(tokenizer.encode("ab c")) == ["a", "b", "<unk>", "<unk>"]
    assert learn("character", ["aab", "ab "], min_frequency=1, size=6).size == 6


def test_wordpiece_takes_the_longest_piece_first() -> None:
    tokenizer = learn("wordpiece", ["abcd abcd abcd abc abc abc abc bcd bcd"] * 4, size=60)
    symbols = set(tokenizer._symbols)
    for word in ("abcd", "abcabcd", "dcba"):
        rest, expected = " " + word, []
        while rest:
            mark = "##" if expected else ""
            end = max(place for place in range(1, len(rest) + 1) if mark + rest[:place] in symbols)
            expected.append(tokenizer._symbols.index(mark + rest[:end]))
            rest = rest[end:]
        assert tokenizer.encode(word) == expected


def test_unigram_takes_the_most_probable_pieces() -> None:
    tokenizer = learn("unigram", size=400)
    values = dict(json.loads(tokenizer.document())["model"]["vocab"])
    word = " schlafen"

    def best(rest: str) -> float:
        found = [values[rest[:end]] + best(rest[end:]) for end in range(1, len(rest) + 1) if rest[:end] in values]
        return max(found, default=float("-inf")) if rest else 0.0

    found = sum(values[tokenizer._symbols[number]] for number in tokenizer.encode("schlafen"))
    assert found == pytest.approx(best(word))


def test_whole_words_are_the_entries_of_word_lists(learned: dict[str, Tokenizer]) -> None:
    for kind in ("bpe", "wordpiece", "unigram", "word"):
        words = learned[kind].whole_words()
        assert len(words) == learned[kind].size
        assert words[:4] == [None] * 4
        assert "the" in words or kind == "unigram"
        assert " " not in words
    assert "##" not in {word for word in learned["wordpiece"].whole_words() if word and len(word) > 2}
    bpe = learn("bpe", ["the thesis"] * 9, size=280)
    assert [word for word in bpe.whole_words() if word and len(word) > 1] == ["the", "thesis"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "Unknown kind None"),
        ('{"kind": "morphemes"}', "morphemes"),
        ('{"kind": "subword_nmt", "version": [0, 2]}', "damaged"),
        ('{"kind": "word", "model": {}}', "damaged"),
        ("{", "damaged"),
    ],
)
def test_files_of_unknown_kind_are_rejected(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(ModelError, match=message):
        load_tokenizer(tmp_path / "t.json")


def test_a_file_with_a_changed_kind_is_rejected(tmp_path: Path) -> None:
    document = json.loads(learn("wordpiece").document())
    (tmp_path / "t.json").write_text(json.dumps({**document, "kind": "word"}))
    with pytest.raises(ModelError, match="WordPiece"):
        load_tokenizer(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("codes", "message"),
    [("#version: 0.2\na b\nabc\n", "line 3"), ("a b c\n", "line 1"), ("#version: 9.9\na b\n", "9.9")],
)
def test_bad_codes_are_named_by_line(tmp_path: Path, codes: str, message: str) -> None:
    (tmp_path / "codes").write_text(codes)
    with pytest.raises(DataError, match=message):
        read_codes(tmp_path / "codes")


def test_a_missing_codes_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        SubwordNMTConfig(codes=tmp_path / "nowhere").learn(["a"])


def test_settings_of_another_kind_are_rejected() -> None:
    with pytest.raises(ConfigError, match=r"subword\.dropout"):
        parse_settings({"subword": {"kind": "word", "dropout": 0.1}}, TextConfig, "in a test")
    with pytest.raises(ConfigError, match="morphemes"):
        parse_settings({"subword": {"kind": "morphemes"}}, TextConfig, "in a test")
    assert TextConfig.model_validate({"subword": {"dropout": 0.1}}).subword.resampling == 0.1
    assert TextConfig.model_validate({"subword": {"kind": "word"}}).subword.resampling == 0.0


def test_a_setting_of_another_kind_is_distinguished_from_a_typo(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("subword: {kind: bpe, size: 6000}\n")
    told = "unknown setting subword.size .*belongs to another kind of subword. .*codes.*replaces the whole group"
    with pytest.raises(ConfigError, match=told):
        load_settings(tmp_path / "run.yaml", ["subword.kind=subword_nmt"], TextConfig)
    with pytest.raises(ConfigError, match="did you mean subword.merges"):
        load_settings(None, ["subword.kind=subword_nmt", "subword.merge=5"], TextConfig)
    config = load_settings(tmp_path / "run.yaml", ["subword={kind: subword_nmt, merges: 5}"], TextConfig)
    assert config.subword == SubwordNMTConfig(merges=5)


def test_broken_text_is_an_error_with_its_position(learned: dict[str, Tokenizer]) -> None:
    for tokenizer in learned.values():
        with pytest.raises(DataError, match=r"Text 2 .*U\+D800.* character 3"):
            tokenizer.encode_batch(["fine", "ab\ud800"])
