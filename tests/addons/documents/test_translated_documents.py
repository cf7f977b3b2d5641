"""Documents: untranslated parts stay byte for byte, and markup stays valid, for any behaviour of the translator."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stand_in_translators import StandIn, Write, anyhow, backwards, same, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("sentencex")

UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
_SIGNS = [
    *("*_`~[]()<>!|#&;\\\"'=/:-+ \t\n"),
    *(
        "a",
        "dog ",
        "Two. ",
        "1. ",
        "**",
        "```\n",
        "\r\n",
        "\n\n",
        "    ",
        "---\n",
        "> ",
        "|-|-|\n",
        "é",
        "\0",
        "\ufeff",
    ),
    *("<b>", "</b>", "<i x='1'>", "</i>", "<br>", "<p>", "</p>", "<code>", "</code>", "<script>", "</script>"),
    *(
        "WEBVTT\n",
        "NOTE ",
        "1\n",
        "00:01:02,500 --> 00:01:04,000\n",
        "01:02.500 --> 01:04.000 align:end\n",
        "-->",
        "{\\an8}",
    ),
    *("&amp;", "&lt", "<!--", "-->", "<!", "<![", "http://a.b", '<img alt="a dog">', "[a](b)", "![a b](c)"),
]
SIGNS = st.lists(st.sampled_from(_SIGNS), max_size=25).map("".join)
TEXTS = ["text", "markdown", "html", "srt", "vtt"]  # formats in which every text is valid
FEW = settings(max_examples=60, deadline=None)


def translated(text: str, format: str, write: Write, **of_translator: object) -> str:
    translator = StandIn(write, **of_translator)  # type: ignore[arg-type]
    return translate_document(translator, text, format=format).text  # type: ignore[arg-type]


@FEW
@given(text=UNICODE | SIGNS, format=st.sampled_from(TEXTS))
@example("", "html")
@example("a\\ dog", "markdown")
@example("dog &Adogs: x", "html")
@example("<![A: dog", "html")
@example("---\na: dog\n---\n# dog\n", "markdown")
@example("\ufeff a dog", "markdown")
@example("a\r\n\r\n\tb  \r\n- c\rd\n", "markdown")
@example("\ufeff1\r\n0:0:0 --> 0:0:1\r\na <i>dog\r\n runs</i>\r\n\r\nb\r2\r0:0:2 --> \rc", "srt")
@example("WEBVTT a\n\nNOTE\nb\n\nc\n00:01.000 --> x\n<v D>a &lt;\n \nb --> c", "vtt")
def test_a_translation_that_changes_nothing_returns_the_document(text: str, format: str) -> None:
    assert translated(text, format, same) == text
    assert translated(text, format, same, longest=3) == text


@FEW
@given(text=UNICODE | SIGNS, format=st.sampled_from(TEXTS), write=st.sampled_from([upper, backwards, anyhow]))
def test_no_document_is_refused(text: str, format: str, write: Write) -> None:
    translated(text, format, write, longest=20)


@FEW
@given(
    text=st.lists(st.sampled_from([*"aB. \t\n\r", "\r\n", "  ", "é", "¿", "- ", "3. ", "\u2028", "\x0b"])).map("".join)
)
def test_the_layout_of_text_is_kept(text: str) -> None:
    found = translated(text, "text", upper)
    assert re.sub(r"[^\W\d_]", "a", found) == re.sub(r"[^\W\d_]", "a", text)


WORDS = st.lists(
    st.sampled_from(["dog", "runs", "Two", "men.", "park,", "&amp;", "(big)", "x<br>y"]), min_size=1, max_size=5
)
NAMES = st.sampled_from(["b", "i", "em", "span", "a", "p", "div", "li", "code", "u"])


def element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    attributes = st.sampled_from(
        ["", ' href="a?b&amp;c"', " id=x", ' class="notranslate"', ' title="a dog"', " hidden"]
    )
    tag = st.builds(lambda name, given, text: f"<{name}{given}>{text}</{name}>", NAMES, attributes, inner)
    void = st.sampled_from(['<img src="a.png" alt="a dog">', "<br/>", "<!-- x -->", "<hr>"])
    return st.lists(tag | WORDS.map(" ".join) | void, max_size=4).flatmap(
        lambda parts: st.sampled_from(["", " "]).map(lambda glue: glue.join(parts))
    )


HTML = st.recursive(WORDS.map(" ".join), element, max_leaves=12)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: Counter[tuple[object, ...]] = Counter()
        self.waiting: list[str] = []
        self.balanced = True
        self.feed(text)
        self.close()
        self.balanced &= not self.waiting

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[(tag, *((name, None if name in ("alt", "title") else value) for name, value in attrs))] += 1
        if tag not in ("img", "br", "hr"):
            self.waiting.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[(tag,)] += 1

    def handle_endtag(self, tag: str) -> None:
        self.found[("/", tag)] += 1
        self.balanced &= bool(self.waiting) and self.waiting.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.found[("!", data)] += 1


@settings(max_examples=150, deadline=None)
@given(text=HTML, write=st.sampled_from([upper, backwards, anyhow]), aligns=st.booleans())
@example("<b>dog runs <i>Two</i></b> <u>men. dog <em>park, dog</em></u>", backwards, True)
def test_tags_stay_balanced_with_their_attributes(text: str, write: Write, aligns: bool) -> None:
    before, after = Tags(text), Tags(translated(text, "html", write, aligns=aligns))
    assert before.balanced
    assert after.balanced
    assert after.found == before.found


SPANS = st.recursive(
    st.sampled_from(["dog runs", "Two men", "a park", "(big) cats"]),
    lambda inner: st.one_of(
        st.builds("**{}**".format, inner),
        st.builds("*{}*".format, st.sampled_from(["dog", "two men"])),
        st.builds("[{}](http://a.b/c_d 'e')".format, st.sampled_from(["dog", "*two* men"])),
        st.builds("{} {}".format, inner, inner),
        st.sampled_from(["`code x`", "![a dog](x.png)", "<http://a.b>", "~~old~~"]),
    ),
    max_leaves=5,
).filter(lambda text: "****" not in text and not re.search(r"\*\*\*|\*\*[^*]*\*\*[^ ]*\*\*", text))
BLOCKS = st.sampled_from(
    ["# {}", "{}", "> {}", "- {}\n- {}", "1. {}\n   {}", "| a | {} |\n|---|---|\n| c | {} |", "{}\n==="]
)


def kinds(text: str) -> Counter[str]:
    """Yield the tokens of a document, with the targets of links."""
    from markdown_it import MarkdownIt

    found: Counter[str] = Counter()
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        for each in [token, *(token.children or ())]:
            if each.type not in ("text", "softbreak"):
                shown = {name: value for name, value in each.attrs.items() if name != "alt"}
                found[f"{each.type} {shown} {each.content if each.type in ('code_inline', 'fence') else ''}"] += 1
    return found


@FEW
@given(
    blocks=st.lists(
        st.builds(lambda block, one, two: block.format(one, two), BLOCKS, SPANS, SPANS)
        | st.sampled_from(["```\ndog runs\n```", "    dog", "<div>\ndog\n</div>", "[ref]: http://x", "***"]),
        max_size=4,
    ),
    write=st.sampled_from([upper, backwards]),
)
def test_markdown_keeps_its_blocks_marks_and_links(blocks: list[str], write: Write) -> None:
    text = "\n\n".join(blocks) + "\n"
    assert kinds(translated(text, "markdown", write)) == kinds(text)
