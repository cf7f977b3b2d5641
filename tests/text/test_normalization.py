"""Unicode normalisation of texts: everywhere the same, and with positions in the original text."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.errors import ModelError
from dragoman.data.cleaning.rules import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.prepare import prepare
from dragoman.inference.control.control import Control
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.control.phrase import Phrase
from dragoman.text.normalization import NormalisedText, normalise
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.words import word_indices

COMPOSED = ["Ein Café für Zoë", "Việt Nam đẹp lắm", "한국어", "ガラスの窓", "ﬁne ① ＡＢＣ"]
DECOMPOSED = [unicodedata.normalize("NFD", text) for text in COMPOSED]
SPECIAL = [
    chr(code)
    for code in range(0x30000)
    if unicodedata.combining(chr(code)) or unicodedata.decomposition(chr(code)) or 0x1100 <= code < 0x1200
]
TEXT = st.one_of(st.text(), st.lists(st.sampled_from([*SPECIAL, *"abc é"]), max_size=8).map("".join))
KINDS = ("bpe", "subword_nmt", "wordpiece", "unigram", "word", "character")


def learn(kind: str = "bpe", **text: object) -> Tokenizer:
    subword = {"kind": kind} | ({"size": 400} if kind not in ("subword_nmt", "character") else {})
    subword |= {} if kind == "unigram" else {"min_frequency": 1}
    return train_tokenizers(TextConfig.model_validate({"subword": subword, **text}), COMPOSED * 2, []).source


@settings(max_examples=100)
@given(text=TEXT, form=st.sampled_from(["nfc", "nfkc", "none"]))
def test_parts_are_normalised_independently(text: str, form: str) -> None:
    normalised = NormalisedText.of(text, form)  # type: ignore[arg-type]
    assert normalised.text == (text if form == "none" else unicodedata.normalize(form.upper(), text))  # type: ignore[arg-type]
    if normalised.origins is None:
        return
    assert len(normalised.origins) == len(normalised.text)
    parts = dict.fromkeys(normalised.origins)
    assert "".join(normalise(text[start:end], form) for start, end in parts) == normalised.text  # type: ignore[arg-type]
    for index in range(len(normalised.text)):
        start, end = normalised.span_in_original(index, index + 1)
        assert start < end
        assert normalised.position_of(start) <= index < normalised.position_of(end)


@pytest.mark.parametrize("kind", KINDS)
def test_canonically_equivalent_texts_have_the_same_ids(kind: str) -> None:
    tokenizer = learn(kind)
    assert tokenizer.normalization == "nfc"
    assert tokenizer.encode_batch(DECOMPOSED) == tokenizer.encode_batch(COMPOSED)
    assert tokenizer.encode_continuation(DECOMPOSED) == tokenizer.encode_continuation(COMPOSED)
    raw = learn(kind, normalization="none")
    assert raw.encode_batch(DECOMPOSED) != raw.encode_batch(COMPOSED)


@pytest.mark.parametrize("kind", KINDS)
def test_positions_refer_to_the_original_text(kind: str) -> None:
    tokenizer = learn(kind)
    for text in DECOMPOSED[:4]:
        for start, end in tokenizer.spans(text):
            assert not unicodedata.combining(text[start]) or start == 0
            assert end == len(text) or not unicodedata.combining(text[end])
        words = [text.split()[index] for index in word_indices(tokenizer, text) if index is not None]
        assert list(dict.fromkeys(words)) == text.split()


def test_nfkc_replaces_compatibility_characters() -> None:
    tokenizer = learn(normalization="nfkc")
    assert tokenizer.decode(tokenizer.encode("ﬁne ① ＡＢＣ")) == "fine 1 ABC"
    assert learn().decode(learn().encode("ﬁne ① ＡＢＣ")) == "ﬁne ① ＡＢＣ"


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_the_model_folder_records_the_normalisation(tmp_path: Path, kind: str) -> None:
    tokenizer = learn(kind).with_tags(["bt"])
    Tokenizers(tokenizer, tokenizer).save(tmp_path)
    loaded = Tokenizers.load(tmp_path).source
    assert loaded.normalization == "nfc"
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.with_normalization("none").fingerprint != loaded.fingerprint
    file = tmp_path / "tokenizer.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "normalization": "nfd"}))
    with pytest.raises(ModelError, match=r"damaged \(normalization: 'nfd'\)"):
        Tokenizers.load(tmp_path)
    del document["normalization"]
    file.write_text(json.dumps(document))
    assert Tokenizers.load(tmp_path).source.normalization == "none"


def test_kinds_with_their_own_normalisation_are_not_normalised_twice() -> None:
    text = TextConfig.model_validate({"subword": {"kind": "bert", "size": 200}})
    assert text.effective_normalization == "none"
    assert train_tokenizers(text, COMPOSED, []).source.normalization == "none"


def test_equivalent_pairs_are_duplicates(tmp_path: Path) -> None:
    lines = [f"{one}\tx {one}\n" for text in zip(COMPOSED[:2], DECOMPOSED[:2], strict=True) for one in text]
    (tmp_path / "corpus.tsv").write_text("".join(lines), encoding="utf-8")
    corpus = CorpusConfig(pairs=tmp_path / "corpus.tsv")

    def counts(**text: object) -> dict[str, int]:
        settings = TextConfig.model_validate({"subword": {"size": 300}, **text})
        return prepare(corpus, CleaningConfig(), settings, tmp_path / "prepared", workers=1).reports[0].counts

    assert counts() == {"duplicates": 2}
    assert counts(normalization="none") == {}


def test_terms_and_phrases_match_equivalent_text() -> None:
    text = DECOMPOSED[0]
    for term in (COMPOSED[0].split()[1], DECOMPOSED[0].split()[1]):
        (match,) = Glossary.of({term: "coffee house"}).find(text)
        assert text[match.start : match.end] == text.split()[1]
        assert Glossary.of({f"={term}": "x"}).find(text)
        assert Phrase.of(term).times(text) == Phrase.of(term).times(COMPOSED[0]) == 1
    kana = Glossary.of({"ガラス": "glass"}).find(DECOMPOSED[3])
    assert DECOMPOSED[3][kana[0].start : kana[0].end] == unicodedata.normalize("NFD", "ガラス")
    control = Control.of(glossary={"Café": "coffee house", "Zoë": None}, keep=["all"])
    assert control is not None
    assert len(control.requirements(text + " 12.5").terms) == 2
