"""Tags in every kind of vocabulary: their ids, that no text can produce them, files, and invalid tags."""

import json
from pathlib import Path

import numpy as np
import pytest

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.load import parse_settings
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK, source_tags, tag_languages
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.vocabularies.union import load_tokenizer

KINDS = ("bpe", "subword_nmt", "wordpiece", "unigram", "word", "character")
SIZES = {"bpe": 300, "wordpiece": 120, "unigram": 290, "word": 100}
TAGS = ("to:de", "bt", "domain-law")
LINES = ["A dog <to:de> runs over <bt> the green grass .", "<to:de><bt> @@ <domain-law>"] * 4


def learn(kind: str, tags: tuple[str, ...] = TAGS, shared: bool = True) -> Tokenizers:
    size = {"size": SIZES[kind]} if kind in SIZES else {}
    text = {"subword": {"kind": kind, **size}, "tags": tags, "shared": shared}
    return train_tokenizers(TextConfig.model_validate(text), LINES, LINES)


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    return {kind: learn(kind).source for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_tags_come_last_and_leave_all_other_ids_as_they_were(learned: dict[str, Tokenizer], kind: str) -> None:
    tagged, plain = learned[kind], learn(kind, ()).source
    assert tagged.size == plain.size + len(TAGS)
    assert tagged.tag_ids(TAGS) == [plain.size, plain.size + 1, plain.size + 2]
    assert tagged.tag_ids(["bt", "to:de"]) == [plain.size + 1, plain.size]
    assert tagged.tag_ids([]) == plain.tag_ids([]) == []
    assert tagged.encode_batch(LINES) == plain.encode_batch(LINES)
    assert tagged.fingerprint != plain.fingerprint
    assert plain.with_tags(TAGS).fingerprint == tagged.fingerprint
    assert tagged.with_tags(()).document() == plain.document()


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_becomes_a_tag(learned: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = learned[kind]
    first = min(tokenizer.tag_ids(TAGS))
    for text in (*LINES, "<to:de>", "<bt>", " <bt> ", "a<to:de>b", "<to:de><to:de>", "<domain-law> x"):
        ids = tokenizer.encode(text)
        assert all(len(SPECIAL_SYMBOLS) <= number < first or number == UNK for number in ids), text
        if UNK not in ids:
            assert tokenizer.decode(ids).strip() == text.strip()
        assert UNK not in ids or not tokenizer.lossless


@pytest.mark.parametrize("kind", KINDS)
def test_tags_are_shown_but_not_part_of_the_text(learned: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = learned[kind]
    ids = tokenizer.encode(LINES[0])
    tags = tokenizer.tag_ids(TAGS)
    assert tokenizer.decode([*tags, *ids]) == tokenizer.decode([*ids, *tags]) == LINES[0]
    assert tokenizer.pieces([*tags, *ids]) == ["<to:de>", "<bt>", "<domain-law>", *tokenizer.pieces(ids)]
    words = tokenizer.whole_words()
    assert len(words) == tokenizer.size
    assert words[-3:] == [None] * 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [True, False])
def test_files_keep_the_tags(tmp_path: Path, kind: str, shared: bool) -> None:
    tokenizers = learn(kind, shared=shared)
    assert tokenizers.target.tags == (TAGS if shared else ())
    tokenizers.save(tmp_path)
    loaded = Tokenizers.load(tmp_path)
    assert loaded.tags == TAGS
    assert loaded.shared is shared
    assert loaded.fingerprint == tokenizers.fingerprint
    assert loaded.source.encode(LINES[0]) == tokenizers.source.encode(LINES[0])
    more = loaded.with_tags([*TAGS, "new"])
    assert more.source.tag_ids(["new"]) == [tokenizers.source.size]
    assert more.shared is shared


def test_resampling_keeps_the_tags_before_the_text() -> None:
    tokenizer = learn("bpe").with_dropout(0.5).source
    assert tokenizer.tags == TAGS
    tags, ids = tokenizer.tag_ids(["to:de", "bt"]), tokenizer.encode(LINES[0])
    other = tokenizer.resample([*tags, *ids], np.random.default_rng(1))
    assert other[:2] == tags
    assert other[2:] != ids
    assert tokenizer.decode(other) == LINES[0]
    assert tokenizer.resample(tags, np.random.default_rng(1)) == tags
    assert tokenizer.resample([*tags, *ids], np.random.default_rng(1), 0.0) == [*tags, *ids]


@pytest.mark.parametrize("damage", ["bt", 3, [""], ["a b"], ["pad"], [["bt"]]])
def test_damaged_tags_are_rejected_with_the_file_name(tmp_path: Path, damage: object) -> None:
    document = json.loads(learn("word").source.document())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**document, "tags": damage}))
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_an_unknown_tag_is_an_error_that_lists_the_known_tags(learned: dict[str, Tokenizer]) -> None:
    with pytest.raises(ConfigError, match=r"no tag 'fr'; its tags are to:de, bt, domain-law\. .*text\.tags"):
        learned["bpe"].tag_ids(["bt", "fr"])
    with pytest.raises(ConfigError, match="it has no tags"):
        learn("bpe", ()).source.tag_ids(["bt"])


@pytest.mark.parametrize("tag", ["", "to:", "a b", "<bt>", "a,b", "a\tb", "pad", "/s", "unk", "to:d e", "x\u0000"])
def test_invalid_tags_are_rejected(tag: str) -> None:
    with pytest.raises(ConfigError, match=r"tags\.0: .* is not a valid tag"):
        parse_settings({"tags": [tag]}, TextConfig, "text")


def test_vectors_do_not_support_tags() -> None:
    with pytest.raises(ConfigError, match="feature vectors does not support tags"):
        parse_settings({"vectors": {"width": 2}, "tags": ["bt"]}, TextConfig, "text")
    tokenizers = train_tokenizers(TextConfig.model_validate({"vectors": {"width": 2}}), [], LINES)
    assert tokenizers.tags == ()
    assert tokenizers.source.tag_ids([]) == []
    for refused in (lambda: tokenizers.with_tags(["bt"]), lambda: tokenizers.source.tag_ids(["bt"])):
        with pytest.raises(ConfigError, match=r"feature vectors does not support tags \(bt\)"):
            refused()


def test_the_language_comes_first() -> None:
    assert source_tags("de", ["bt", "law"]) == ("to:de", "bt", "law")
    assert source_tags(None) == ()
    assert tag_languages(["bt", "to:fr", "to:de"]) == ("fr", "de")
