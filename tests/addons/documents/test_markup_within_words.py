"""Markup whose edge lies within a word: notes, exponents, cents, formulas and addresses, in every format with marks."""

import json
from typing import Any

import pytest
from open_documents import body
from open_documents import document as open_document
from stand_in_translators import StandIn, Write
from word_documents import document, formatted, paragraph, run

from dragoman.addons.documents.document import translate_document
from dragoman.decode.search import SearchConfig
from dragoman.inference.control.control import Control
from dragoman.inference.translation.request import Request

pytest.importorskip("sentencex")
pytest.importorskip("lxml")


def capitals(words: list[str]) -> list[tuple[str, int]]:
    """Return words of letters in capitals and all others unchanged, as a good model would copy them."""
    return [(word.upper() if word.strip(".,!?()[]").isalpha() else word, index) for index, word in enumerate(words)]


def reversed_order(words: list[str]) -> list[tuple[str, int]]:
    return capitals(words)[::-1]


class Copying(StandIn):
    """A translator that copies without being asked to."""

    def _written(self, text: str, request: object) -> str:
        return " ".join(word for word, _ in self._write(text.split()))


def translated(text: str, format: str = "html", write: Write = capitals) -> tuple[str, list[str]]:
    """Return the translation, and the sentences that the model read."""
    translator = Copying(write)
    found = translate_document(translator, text, format=format).text  # type: ignore[arg-type]
    return found, [each for each, _ in translator.asked]


@pytest.mark.parametrize(
    ("before", "read", "after"),
    [
        ("About 2<sup>10</sup> cats.", "About 2 cats.", "ABOUT 2<sup>10</sup> CATS."),
        ("See 6·10<sup>23</sup> now", "See 6·10 now", "SEE 6·10<sup>23</sup> NOW"),
        ("A cat<sup>3</sup>, too.", "A cat, too.", "A CAT<sup>3</sup>, TOO."),
        ("A cat.<sup>3</sup> Two men.", "A cat.", "A CAT.<sup>3</sup> TWO MEN."),
        ('The cat<sup><a href="#f">†</a></sup> ran', "The cat ran", 'THE CAT<sup><a href="#f">†</a></sup> RAN'),
        (
            "Some salt is Na<sub>2</sub>SO<sub>4</sub>.",
            "Some salt is Na2SO4.",
            "SOME SALT IS Na<sub>2</sub>SO<sub>4</sub>.",
        ),
        ("It costs 12<small>95</small> €", "It costs 12 €", "IT COSTS 12<small>95</small> €"),
        ("<a href=x>My news</a><span class=n>12</span>", "My news", "<a href=x>MY NEWS</a><span class=n>12</span>"),
        ("The 3<sup>rd</sup> cat", "The 3rd cat", "THE 3<sup>rd</sup> CAT"),
        ("It costs $<b>7</b> now", "It costs $7 now", "IT COSTS $<b>7</b> NOW"),
        ("<sup>4</sup>Two cats", "Two cats", "<sup>4</sup>TWO CATS"),
        ("About 2<sup>1</sup>/<sub>3</sub> cats", "About 2 cats", "ABOUT 2<sup>1</sup>/<sub>3</sub> CATS"),
        ("A cat<sup>[who says?]</sup> ran", "A cat ran", "A CAT<sup>[WHO SAYS?]</sup> RAN"),
        ("See H<b>2024</b> and re<i>act</i> now", "See H2024 and react now", "SEE H<b>2024</b> AND RE<i>ACT</i> NOW"),
    ],
)
def test_signs_stay_at_their_words(before: str, read: str, after: str) -> None:
    found, sentences = translated(f"<p>{before}</p>")
    assert found == f"<p>{after}</p>"
    assert read in sentences


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("About 2<sup>10</sup> cats ate 2<sup>3</sup>", "2<sup>3</sup> ATE CATS 2<sup>10</sup> ABOUT"),
        ("A cat<sup>3</sup> ran", "RAN CAT<sup>3</sup> A"),
        ("The <b>red</b><sup>1</sup> cat", "CAT <b>RED</b><sup>1</sup> THE"),
        ("A E<sub>max</sub> of 5", "5 OF E<sub>MAX</sub> A"),
    ],
)
def test_signs_move_with_their_words(before: str, after: str) -> None:
    assert translated(f"<p>{before}</p>", write=reversed_order)[0] == f"<p>{after}</p>"


@pytest.mark.parametrize(
    ("before", "read", "after"),
    [
        ("at 10<sup>6</sup>Hz now", "at 10Hz now", "NOW 10<sup>6</sup>Hz AT"),
        ("some m<sup>2</sup>/s here", "some m/s here", "HERE m<sup>2</sup>/s SOME"),
        ("a CO<sub>2</sub>-neutral cat", "a CO-neutral cat", "CAT CO<sub>2</sub>-neutral A"),
        ("the cat<sup>3</sup>'s bed", "the cat's bed", "BED cat<sup>3</sup>'s THE"),
    ],
)
def test_signs_stay_within_their_words(before: str, read: str, after: str) -> None:
    assert translated(f"<p>{before}</p>", write=reversed_order) == (f"<p>{after}</p>", [read])


def test_signs_stay_at_a_part_of_a_word_that_becomes_two() -> None:
    write: Write = lambda words: [  # noqa: E731
        (part, index) for index, word in enumerate(words) for part in (["10", "Hz"] if word == "10Hz" else [word])
    ]
    assert translated("<p>at 10<sup>6</sup>Hz</p>", write=write)[0] == "<p>at 10<sup>6</sup> Hz</p>"


@pytest.mark.parametrize(
    ("before", "read", "after"),
    [
        (r"Some 10\textsuperscript{6} cats", "Some 10 cats", r"SOME 10\textsuperscript{6} CATS"),
        ("Some 10$^6$ cats", "Some 10 cats", "SOME 10$^6$ CATS"),
        (r"Some m\(^{-3}\) of CO$_{2}$", "Some m of CO", r"SOME M\(^{-3}\) OF CO$_{2}$"),
        (r"At 20$^\circ$C or H$_2$O", "At 20C or H2O", r"AT 20$^\circ$C OR H$_2$O"),
        (r"The cat$^\dagger$ ran~\citep[p.~2]{a}.", "The cat ran.", r"THE CAT$^\dagger$ RAN~\citep[p.~2]{a}."),
        (r"A value of $x^2$ and $^{14}$C", r"A value of x^2 and ^{14}C", r"A VALUE OF $x^2$ AND $^{14}$C"),
    ],
)
def test_signs_in_latex(before: str, read: str, after: str) -> None:
    assert translated(before, "latex") == (after, [read])


def test_a_raised_part_without_a_counterpart_raises_no_word() -> None:
    write: Write = lambda words: [({"3rd": "dritte"}.get(word, word), index) for index, word in enumerate(words)]  # noqa: E731
    assert translated("<p>The 3<sup>rd</sup> cat</p>", write=write)[0] == "<p>The dritte<sup></sup> cat</p>"


LINK = '<a href="https://a.b/c"><span class="i">https://</span><span>a.b</span><span class="i">/c</span></a>'
TAG = '<a href="/tags/x" rel="tag">#<span>{}</span></a>'
PARTS = TAG.format("News</span><span>Today")


@pytest.mark.parametrize("before", ["Two cats {}", "{} Two cats", "Two {} cats", "Two cats, {}, ran", "Two cats ({})."])
@pytest.mark.parametrize(
    "kept", [LINK, PARTS, TAG.format("news"), '<a href="m:x">x@<b>a.org</b></a>', "<a href=x>@<i>me</i></a>"]
)
def test_addresses_and_tags_keep_their_elements(before: str, kept: str) -> None:
    for write in (capitals, reversed_order):
        found, sentences = translated(f"<p>{before.format(kept)}</p>", write=write)
        assert kept in found
        assert "CATS" in found.replace(kept, "") and "TWO" in found.replace(kept, "")
        assert len(sentences) == 1


def test_an_address_that_the_model_omits_is_kept_beside_its_word() -> None:
    write: Write = lambda words: [(word, index) for index, word in enumerate(words) if "/" not in word]  # noqa: E731
    assert translated(f"<p>Two {LINK} cats</p>", write=write)[0] == f"<p>{LINK} Two cats</p>"
    assert translated(f"<p>Two cats {LINK}.</p>", write=write)[0] == f"<p>Two cats {LINK}</p>"


def test_the_description_of_a_link_to_an_address_is_translated() -> None:
    text = '<p>See <a href="https://a.b" title="two cats">https://<b>a.b</b></a> now</p>'
    assert translated(text)[0] == '<p>SEE <a href="https://a.b" title="TWO CATS">https://<b>a.b</b></a> NOW</p>'


def test_signs_in_markdown_messages_and_xliff() -> None:
    assert translated("About 2<sup>10</sup> cats[4](#n) ran.", "markdown") == (
        "ABOUT 2<sup>10</sup> CATS[4](#n) RAN.",
        ["About 2 cats ran."],
    )
    text, sentences = translated('{"a": "About 5 m<sup>2</sup> left"}', "json")
    assert (json.loads(text)["a"], sentences) == ("ABOUT 5 M<sup>2</sup> LEFT", ["About 5 m left"])
    unit = "<trans-unit id='1'><source>{}</source></trans-unit>"
    xliff = "<xliff version='1.2'><file source-language='en'><body>{}</body></file></xliff>"
    text, sentences = translated(xliff.format(unit.format("A cat<g id='1' ctype='x-sup'>7</g> ran")), "xliff")
    assert "A CAT<g id='1' ctype='x-sup'>7</g> RAN</target>" in text and sentences == ["A cat ran"]


def test_signs_in_word_documents_and_open_documents() -> None:
    raised = '<w:vertAlign w:val="superscript"/>'
    content = document(paragraph(run("About 2"), run("10", raised), run(" cats"), run("4", raised), run(" ran.")))
    translator = Copying(reversed_order)
    found = translate_document(translator, content, format="docx").content  # type: ignore[arg-type]
    pieces = [(text.strip(), format) for (text, format, _) in next(iter(formatted(found)))]
    assert pieces == [("RAN. CATS", ""), ("4", "vertAlign"), ("2", ""), ("10", "vertAlign"), ("ABOUT", "")]
    assert [text for text, _ in translator.asked] == ["About 2 cats ran."]
    properties = '<style:text-properties style:text-position="super 58%"/>'
    style = f'<style:style style:name="T1" style:family="text">{properties}</style:style>'
    raised = '<text:span text:style-name="T1">10</text:span>'
    content = open_document(f"<text:p>About 2{raised} cats</text:p>", automatic=style)
    found = translate_document(Copying(reversed_order), content, format="odt").content  # type: ignore[arg-type]
    assert f"<text:p>CATS 2{raised} ABOUT</text:p>" in body(found)


def test_code_that_is_also_a_word_stays_code() -> None:
    for source in ("We set it as a `button` via `as` here", "`as` is as good as `as`", "see `/as` and `as`, or as"):
        found, _ = translated(source, "markdown")
        assert found == " ".join(word.upper() if word.isalpha() else word for word in source.split())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A cat buys <b>#sheep</b> now", "A CAT BUYS <b>#Schaf &amp; Co</b> NOW"),
        ("A cat buys <i>#red</i> dogs now", "A CAT BUYS <i>#Rothunde</i> NOW"),
        ("A cat buys <b>#she</b>ep now", "A CAT BUYS #Schaf &amp; Co NOW"),
        ("A cat sleeps. <b>#sheep</b>", "A CAT SLEEPS. <b>#Schaf &amp; Co</b>"),
        ("<p>#sheep<p>#cat", "<p>#Schaf &amp; Co<p>#cat"),
    ],
)
def test_a_term_of_the_glossary_takes_the_markup_of_kept_text(before: str, after: str) -> None:
    glossary = {"#sheep": "#Schaf & Co", "#red dogs": "#Rothunde"}

    class Obedient(Copying):
        def request(self, **settings: Any) -> Request:
            return Request(SearchConfig(), control=Control.of(glossary=glossary))

        def _written(self, text: str, request: object) -> str:
            for term, target in glossary.items():
                text = text.replace(term, target)
            return " ".join(word if word in " ".join(glossary.values()) else word.upper() for word in text.split())

    translator = Obedient(capitals)
    assert translate_document(translator, before, format="html", glossary=glossary).text == after  # type: ignore[arg-type]
