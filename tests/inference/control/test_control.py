"""Translations contain the required text byte for byte, for any Unicode and any behaviour of the model."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny_model import SOURCES, TARGETS, tiny_config

from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Pair, Row
from dragoman.inference.control.control import Control
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.control.keep import KeepRules
from dragoman.inference.control.phrase import Phrase
from dragoman.inference.translation.translator import Translator
from dragoman.models.interface import LengthLimit, LengthLimits
from dragoman.text.symbols import TERMINOLOGY, InlineText, placeholder_symbol
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.words import split_units

KINDS: dict[str, dict[str, int]] = {
    "bpe": {"size": 280},
    "unigram": {"size": 290},
    "word": {"min_frequency": 1},
    "character": {"min_frequency": 1},
    "subword_nmt": {"merges": 30},
    "wordpiece": {"size": 90},
}
if find_spec("sentencepiece"):
    KINDS["sentencepiece"] = {"size": 60}
OWN = "+ symbols"
"""Suffix of a kind whose model has its own symbols for two spans, and for terms."""
KINDS |= {f"{kind}{OWN}": KINDS[kind] for kind in ("bpe", "unigram")}
SHORT = {"length_factor": 0.5, "length_margin": 3, "beam": 2}


def tokenizers_of(kind: str) -> Tokenizers:
    named = {"kind": kind.removesuffix(OWN), **KINDS[kind]}
    config = TextConfig.model_validate({"subword": named, "shared": False})
    tokenizers = train_tokenizers(config, [*SOURCES, "3 4 7"], [*TARGETS, "3 4 7"])
    return (
        tokenizers.with_tags([placeholder_symbol(1), placeholder_symbol(2), *TERMINOLOGY])
        if kind.endswith(OWN)
        else tokenizers
    )


@cache
def translator(kind: str, limit: int | None = None) -> Translator:
    """A random model with one layer per side."""
    tokenizers = tokenizers_of(kind)
    positions = {} if limit is None else {"positions": {"kind": "learned", "limit": limit}}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = tiny_config(tie_embeddings=False, **positions).build(tokenizers.source.size, tokenizers.target.size)
    return Translator.of(LoadedModel(model, tokenizers, Meta(step=0), {}), torch.device("cpu"), warn_unfinished=False)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=6)
WORDS = st.sampled_from(["a dog", "runs .", "Hund", "( 3 )", "zwei Hunde,", "3.5"])
PHRASES = st.one_of(TEXT, WORDS).map(str.strip).filter(bool)
SPANS = st.one_of(
    st.sampled_from(["https://a.b/c?d=1", "x@y.org", "7", "1,234.5", "<b>", "</b>", "&amp;", "{name}", "%s", "3"]),
    st.sampled_from(["🐶", "👩‍👧", "🇩🇪", "@me", "#tag", ":id", "a/b.c", "\\n"]),
)
SOURCE = st.lists(st.one_of(SPANS, WORDS, TEXT, st.just(" ")), max_size=6).map("".join)
KIND = st.sampled_from(list(KINDS))


@settings(max_examples=12, deadline=None)
@given(
    kind=KIND,
    lines=st.lists(st.tuples(SOURCE, st.lists(st.lists(PHRASES, min_size=1, max_size=2), max_size=3)), max_size=3),
)
def test_required_phrases_are_present_in_any_batch(kind: str, lines: list) -> None:
    lines = [(text, phrases if text.strip() else []) for text, phrases in lines]
    texts = [text for text, _ in lines]
    requests = [translator(kind).request(constraints=phrases, search=SHORT) for _, phrases in lines]
    found = translator(kind).translate(texts, requests=requests)
    assert len(found) == len(texts)
    for (text, phrases), translation in zip(lines, found, strict=True):
        assert translation or not text.strip() or not phrases
        for forms, times in Counter(tuple(dict.fromkeys(forms)) for forms in phrases).items():
            assert Phrase(forms).times(translation) >= times
    backwards = translator(kind).translate(texts[::-1], requests=requests[::-1], batch_size=1)
    assert backwards[::-1] == found


@settings(max_examples=10)
@given(kind=KIND, text=SOURCE)
@example("bpe", "1,234.5<b>3🐶")
def test_kept_spans_occur_as_often_as_in_the_source(kind: str, text: str) -> None:
    keep = KeepRules.of(["all"])
    assert keep is not None
    (translation,) = translator(kind).translate([text], keep=["all"], search=SHORT)
    wanted = Counter(span.text for span in keep.find(text))
    found = Counter(span.text for span in keep.find(translation))
    for span, times in wanted.items():  # the text of a random model may extend a span: $3, https://a.b/c?d=1,3
        longer = sum(count for other, count in found.items() if other != span and span in other)
        assert found[span] <= times <= found[span] + longer
    assert all(translation.count(span) >= times for span, times in wanted.items())


@settings(max_examples=10, deadline=None)
@given(
    kind=KIND,
    terms=st.dictionaries(PHRASES.filter(lambda term: term[0] != "="), PHRASES, min_size=1, max_size=3),
    data=st.data(),
)
def test_terms_and_spans_together(kind: str, terms: dict[str, str], data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.one_of(st.sampled_from(sorted(terms)), SPANS, WORDS), max_size=5))
    text = " ".join(pieces)
    control = Control(glossary=Glossary.of(terms), keep=KeepRules.of(["url", "emoji", "markup"]))
    (translation,) = translator(kind).translate([text], glossary=terms, keep=["url", "emoji", "markup"], search=SHORT)
    requirements = control.requirements(text)
    for phrase in requirements.required:
        assert any(form in translation for form in phrase.alternatives)
    for span in requirements.spans:
        assert span.text in translation


@settings(max_examples=10, deadline=None)
@given(text=SOURCE)
def test_spans_are_kept_at_the_position_limit(text: str) -> None:
    few = translator("bpe", 24)
    if len(few.tokenizers.source.encode(text)) > 20:
        text = text[:5]
    keep = KeepRules.of(["all"])
    assert keep is not None
    (translation,) = few.translate([text], keep=["all"], search=SHORT)
    wanted = Counter(span.text for span in keep.find(text))
    found = Counter(span.text for span in keep.find(translation))
    assert {span: found[span] for span in wanted} == wanted


class IgnoresConstraints:
    """An engine that always returns `3 x`."""

    limits = LengthLimits(LengthLimit("source", None, "x"), LengthLimit("target", None, "x"))

    def __init__(self, tokenizers: Tokenizers) -> None:
        self.tokenizers = tokenizers

    def refusal(self, row: Row) -> str | None:
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        for place in range(len(rows)):
            yield place, [Hypothesis(tuple(self.tokenizers.target.encode("3 x")), -1.0, -1.0, finished=True)]

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        return [0.0 for _ in pairs]


def test_any_output_of_the_engine_is_handled_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    tokenizers = tokenizers_of("bpe")
    ignoring = Translator(IgnoresConstraints(tokenizers), tokenizers)
    asked = {"keep": ["number", "url"], "glossary": {"dog": "Hund", "two": None}}
    texts = ["a man", "", "A dog (at www.x.de, 2) runs", "3 men", "3", "two dog 5", "the dog"]
    found = ignoring.translate(texts, **asked)
    # parts with a number that the source lacks there remain unchanged, except for the terms
    assert found == ["3 x", "", "A Hund (at www.x.de, 2) runs", "3 x", "3 x", "two Hund 5", "the Hund"]
    assert "3 line(s) have translations that were assembled from terms or parts" in capsys.readouterr().err
    terms = ["dog", " „Dog“.", "dog 5"]
    assert ignoring.translate(terms, glossary={"dog": "Hund"}) == ["Hund", "„Hund“.", "3 x Hund"]
    assert ignoring.translate(["a man"], constraints=["Katze"], prefixes=["Katzen"]) == ["Katzen 3 x Katze"]  # type: ignore[call-arg]
    request = ignoring.request(constraints=["Katze", "Katze", ["x", "y"]], prefix="Oh")
    assert ignoring.translate(["a man"], requests=request) == ["Oh 3 x Katze Katze"]


class Learned(IgnoresConstraints):
    """An engine that returns one text, with symbols in {}, until constraints are requested."""

    def __init__(self, tokenizers: Tokenizers, text: str) -> None:
        super().__init__(tokenizers)
        self.text = text
        self.forced: list[list[bool]] = []

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        target = self.tokenizers.target
        parts = [part.partition("}")[::2] for part in self.text.split("{")[1:]]
        line = InlineText((self.text.split("{")[0], *(part for _, part in parts)), tuple(symbol for symbol, _ in parts))
        self.forced.append([bool(row.constraints) for row in rows])
        for place in range(len(rows)):
            yield place, [Hypothesis(tuple(target.encode_inlined([line])[0]), -1.0, -1.0, finished=True)]


@pytest.mark.parametrize(
    ("written", "forced", "shown"),
    [
        ("Hund {⟨1⟩} .", False, "Hund www.x.de/a ."),
        ("Hund ({⟨1⟩}) .", False, "Hund (www.x.de/a) ."),
        ("Hunde {⟨1⟩} .", True, None),
        ("Hund {⟨1⟩} {⟨1⟩}", True, None),
        ("Hund {⟨2⟩}", True, None),
        ("Hund", True, None),
        ("Hund{⟨1⟩}", True, None),
    ],
)
def test_output_of_the_unconstrained_search_is_checked(written: str, forced: bool, shown: str | None) -> None:
    """Hunde is not Hund, each symbol occurs once, and no word runs together with a protected span."""
    tokenizers = tokenizers_of(f"bpe{OWN}")
    learned = Learned(tokenizers, written)
    (found,) = Translator(learned, tokenizers).translate(["dog www.x.de/a"], keep=["url"], glossary={"dog": "Hund"})
    assert learned.forced[:2] == ([[False], [True]] if forced else [[False]])
    assert found == shown or (forced and "www.x.de/a" in found and "Hund" in found)


def test_missing_phrases_are_searched_for_together() -> None:
    tokenizers = tokenizers_of(f"bpe{OWN}")
    learned = Learned(tokenizers, "Hund {⟨1⟩} .")
    texts = ["dog x@y.de", "cat x@y.de", "", "www.x.de/a", "cat dog www.x.de/a"]
    found = Translator(learned, tokenizers).translate(texts, keep=["url", "email"], glossary={"cat": "Katze"})
    assert learned.forced[:2] == [[False] * 4, [True] * 2]
    assert found[0::3] == ["Hund x@y.de .", "Hund www.x.de/a ."] and found[2] == ""
    assert all("Katze" in each and kept in each for each, kept in ((found[1], "x@y.de"), (found[4], "www.x.de/a")))


def test_placeholders_are_read_and_restored() -> None:
    kind = translator("bpe")
    control = Control.of(keep=["url", "markup", "emoji"])
    text = "<b>two</b> dogs (https://a.b/c) 3 🐶🐶"
    ((row,),) = (kind.codec.encode_rows([(text, kind.request(keep=["url", "markup", "emoji"]))], [1]),)
    assert row.text == "4 two 7 dogs (22) 3 55 66" or row.text.split()[1] == "two"
    assert not any(span in row.text for span in ("<b>", "https", "🐶"))
    (translation,) = kind.translate([text], keep=["url", "markup", "emoji"], search=SHORT)
    assert control is not None and control.requirements(text).is_met_by(translation)


@pytest.mark.parametrize("kind", ["bpe", "word", "character", "subword_nmt", "wordpiece"])
@pytest.mark.parametrize("text", ["a dog runs .", "two dogs sleep", "man"])
def test_a_required_word_must_be_a_whole_word(kind: str, text: str) -> None:
    words = ["Hund", "zwei", "im", "Park"]
    (translation,) = translator(kind).translate(
        [text], requests=translator(kind).request(constraints=words, search={**SHORT, "beam": 3})
    )
    found = {translation[begin:end] for begin, end in split_units(translation)}
    assert found >= set(words)
