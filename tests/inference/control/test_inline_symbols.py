"""Symbols between words: replaced text is restored exactly, symbols are never divided, and no text can spell one."""

import unicodedata
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import SOURCES, TARGETS

from dragoman.inference.control.glossary import Glossary
from dragoman.inference.control.marking import (
    PairMarking,
    Placeholders,
    PlaceholdersConfig,
    Terminology,
    TerminologyConfig,
    insert_symbols,
)
from dragoman.text.symbols import AS, END, TERM, TERMINOLOGY, UNK, InlineText, placeholder_symbol
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, train_tokenizers

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PIECES = st.sampled_from(
    [
        "https://a.b/c?d=1",
        "x@y.org",
        "7",
        "1,234.5",
        "<b>",
        "&amp;",
        "%s",
        "👩‍👧",
        "Anna",
        "Bob",
        "dog",
        "Hund",
        " ",
        "⟨1⟩",
    ]
)
LINE = st.lists(st.one_of(PIECES, TEXT), max_size=8).map("".join)
SEED = st.integers(0, 1 << 40)
KIND = st.sampled_from(["bpe", "unigram"])
SPANS = Placeholders(PlaceholdersConfig(share=1.0, words=0.7, symbols=3))
TERMS = Terminology(
    TerminologyConfig(glossary="terms.tsv", share=1.0),
    Glossary.of({"dog": ["Hund", "Hunde"], "two dogs": "zwei Hunde", "Bob": None}),
)


@cache
def tokenizer(kind: str) -> Tokenizer:
    config = TextConfig.model_validate({"subword": {"kind": kind, "size": 300}})
    learned = train_tokenizers(config, [*SOURCES, "⟨ 1 ⟩ < > 2"], TARGETS)
    return learned.with_tags(["bt", *SPANS.config.tags, *TERMINOLOGY]).source


def first_symbol(own: Tokenizer) -> int:
    return own.tag_ids(["bt"])[0]


def shown(own: Tokenizer, ids: list[int], line: InlineText, meant: dict[str, str]) -> str:
    """Return the text of ids, with the meaning of their symbols."""
    unknown = [meant[symbol] for symbol in line.symbols]
    return own.decode([UNK if number >= first_symbol(own) else number for number in ids], unknown)


@given(kind=KIND, source=LINE, target=LINE, seed=SEED)
def test_replaced_spans_are_restored(kind: str, source: str, target: str, seed: int) -> None:
    own = tokenizer(kind)
    replaced = SPANS.find_spans(source, target, np.random.default_rng(seed))
    meant = {symbol: source[start:end] for start, end, symbol in replaced[0]}
    assert meant == {symbol: target[start:end] for start, end, symbol in replaced[1]}
    assert len(replaced[0]) == len(replaced[1]) == len(meant) <= SPANS.config.symbols
    for text, spans in zip((source, target), replaced, strict=True):
        line = insert_symbols(text, spans, [])
        assert line.text(meant) == text
        (ids,) = own.encode_inlined([line])
        assert [number for number in ids if number >= first_symbol(own)] == own.tag_ids(line.symbols)
        composed = InlineText(tuple(unicodedata.normalize("NFC", part) for part in line.parts), line.symbols)
        assert shown(own, ids, line, meant) == composed.text(meant)


@given(kind=KIND, source=LINE, target=LINE, line=SEED)
def test_marks_of_terms_can_be_removed(kind: str, source: str, target: str, line: int) -> None:
    """The text between ⟨as⟩ and ⟨/term⟩ is in the target; without it, the source is unchanged."""
    pair = PairMarking(None, TERMS)(source, target, line)
    assert pair == PairMarking(None, TERMS)(source, target, line)
    assert pair.target == InlineText((target,))
    assert pair.source.symbols == (TERM, AS, END) * pair.terms
    parts = list(pair.source.parts)
    for place in range(pair.terms):
        assert parts[3 * place + 2].removeprefix(" ") in target
        parts[3 * place + 2] = ""
    bare = "".join(parts)
    assert source in ((bare, bare.removeprefix(" ")) if not parts[0] and pair.terms else (bare,))
    (ids,) = tokenizer(kind).encode_inlined([pair.source])
    assert sum(number >= first_symbol(tokenizer(kind)) for number in ids) == 3 * pair.terms


@given(
    kind=KIND,
    text=st.lists(
        st.one_of(st.sampled_from([placeholder_symbol(1), f"<{placeholder_symbol(2)}>", *TERMINOLOGY, "<bt>"]), TEXT)
    ),
)
def test_no_text_spells_a_symbol(kind: str, text: list[str]) -> None:
    own, line = tokenizer(kind), "".join(text)
    for ids in (*own.encode_inlined([InlineText((line,))]), *own.encode_continuation([line])):
        assert max(ids, default=0) < first_symbol(own)
    assert own.encode_inlined([InlineText((line,))]) == [own.encode(line)]


@settings(max_examples=30, deadline=None)
@given(source=LINE, target=LINE, seed=SEED)
def test_resampled_subwords_keep_symbols_and_text(source: str, target: str, seed: int) -> None:
    own, random = tokenizer("bpe"), np.random.default_rng(seed)
    spans, _ = SPANS.find_spans(source, target, random)
    meant = {symbol: source[start:end] for start, end, symbol in spans}
    line = insert_symbols(source, spans, [])
    (ids,) = own.encode_inlined([line])
    again = own.resample(own.tag_ids(["bt"]) + ids, random, 0.5)
    assert again[0] == first_symbol(own)
    assert shown(own, again[1:], line, meant) == source


@given(source=LINE, target=LINE, line=SEED)
def test_placeholders_do_not_depend_on_terms(source: str, target: str, line: int) -> None:
    alone, both = PairMarking(SPANS, None)(source, target, line), PairMarking(SPANS, TERMS)(source, target, line)
    assert both.target == alone.target
    assert tuple(symbol for symbol in both.source.symbols if symbol not in TERMINOLOGY) == alone.source.symbols
