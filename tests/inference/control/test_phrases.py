"""Phrases in files, glossaries, and their occurrences in texts."""

import time
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.errors import ConfigError, DataError
from dragoman.inference.control.control import Control
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.control.keep import KINDS, KeepRules
from dragoman.inference.control.phrase import Phrase, read_phrases


def kept(text: str, *kinds: str, patterns: tuple[str, ...] = ()) -> list[str]:
    keep = KeepRules.of(kinds, patterns)
    assert keep is not None
    found = keep.find(text)
    assert all(text[span.start : span.end] == span.text for span in found)
    return [span.text for span in found]


def terms(glossary: Glossary, text: str) -> list[tuple[str, ...]]:
    return [match.phrase.alternatives for match in glossary.find(text)]


def test_a_line_of_phrases() -> None:
    assert read_phrases("the dog\ta cat|cats") == (Phrase(("the dog",)), Phrase(("a cat", "cats")))
    assert read_phrases(r" a\|b | c\\d ") == (Phrase(("a|b", r"c\d")),)
    assert read_phrases(" ") == ()
    for wrong in ("a\t\tb", "a||b", "a|", r"a\n", "a\\"):
        with pytest.raises(ConfigError):
            read_phrases(wrong)


def test_the_longest_term_is_found_at_word_boundaries_in_any_case() -> None:
    glossary = Glossary.of({"dog": "Hund", "hot dog": ["Hotdog", "Hotdogs"], "=US": "USA", "straße": "street"})
    assert terms(glossary, "a dog, hotdogs, dogs and a dog's  dog") == [("Hund",)] * 3
    assert terms(glossary, "my Hot  dog") == [("Hotdog", "Hotdogs")]
    assert terms(glossary, "Dog. DOG.") == [("Hund",), ("HUND", "Hund")]
    assert terms(glossary, "the US and us") == [("USA",)]
    assert terms(glossary, "STRASSE Straße") == [("STREET", "street"), ("Street", "street")]
    cased = Glossary.of({"dog": ["bello", "waldi"], "NATO": "Nato"})
    assert terms(cased, "Dog DOG dog NATO nato") == [
        ("Bello", "Waldi", "bello", "waldi"),
        ("BELLO", "WALDI", "bello", "waldi"),
        ("bello", "waldi"),
        ("Nato",),
        ("Nato",),
    ]


@pytest.mark.parametrize(
    ("term", "text", "count"),
    [
        ("東京", "私は東京に住む。東京!", 2),  # no blanks between words
        ("собака", "Собака и собаки", 1),
        ("กรุงเทพ", "อยู่กรุงเทพมาก", 1),
        ("कुत्ता", "कुत्ता कुत्ताओं", 1),
        ("café", "un café, cafés", 1),
        ("כלב", "כלב הכלב", 1),
    ],
)
def test_word_boundaries_of_other_scripts(term: str, text: str, count: int) -> None:
    assert len(terms(Glossary.of({term: "x"}), text)) == count


def test_a_glossary_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# comment\nhot dog\tHotdog\tHotdogs\n\n=Apple\nhot dog\theißer Hund\n", encoding="utf-8")
    glossary = Glossary.read(path)
    assert terms(glossary, "a hot dog, an Apple, an apple") == [("Hotdog", "Hotdogs", "heißer Hund"), ("Apple",)]
    assert glossary.fingerprint != Glossary.of({"=Apple": None}).fingerprint == Glossary.of({"=Apple": ()}).fingerprint
    for content, message in {
        "a\tb\n\tc\n": "line 2: .* not a phrase",
        "a\tb\t\n": "line 1: .* not a phrase",
        "#\n": "has no terms",
    }.items():
        path.write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            Glossary.read(path)
    path.write_bytes(b"a\tb\nc\t\xff\n")
    with pytest.raises(DataError, match=r"terms.tsv, line 2: broken UTF-8"):
        Glossary.read(path)


def test_kinds_of_kept_spans() -> None:
    text = "On 3.5.2024 at 10:30, 1,234 of 50% B2 2nd 12km (7)"
    assert kept(text, "number") == ["3.5.2024", "10:30", "1,234", "50%", "12km", "7"]
    text = "See https://a.b/c?d=1&e=(2), www.x.org. or <http://q.de/>! http://"
    assert kept(text, "url") == ["https://a.b/c?d=1&e=(2)", "www.x.org", "http://q.de/"]
    text = "(https://de.wikipedia.org/wiki/Bank_(Möbel)), example.com/a, git+ssh://x.y, mailto:a@b.de, z.B. Ende.Das"
    assert kept(text, "url") == [
        "https://de.wikipedia.org/wiki/Bank_(Möbel)",
        "example.com/a",
        "git+ssh://x.y",
        "mailto:a@b.de",
    ]
    assert kept("Ask a.b+c@x-y.co.uk, not @me or a@b", "email") == ["a.b+c@x-y.co.uk"]
    assert kept("a <3 <b>x</b><br/> & &amp; &#8364; <a href='1 > 0'> 1 < 2", "markup") == [
        "<b>",
        "</b>",
        "<br/>",
        "&amp;",
        "&#8364;",
        "<a href='1 >",
    ]
    assert kept("{name} {0:.2f} {{ user.id }} ${x} {} {a b} %s %(n)d %1$s 50% off 100%ig", "placeholder") == (
        ["{name}", "{0:.2f}", "{{ user.id }}", "${x}", "{}", "%s", "%(n)d", "%1$s"]
    )
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert kept(f"{family}x\U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea 1\ufe0f\u20e3 1 ❤\ufe0f #", "emoji") == [
        family,
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea",
        "1\ufe0f\u20e3",
        "❤\ufe0f",
    ]
    assert kept('<a href="http://x.y">1</a>', "all") == ['<a href="http://x.y">', "1", "</a>"]
    assert kept("AB-12 12", "number", patterns=(r"[A-Z]+-\d+", r"\s+")) == ["AB-12", "12"]
    assert KeepRules.of() is None
    for wrong in ({"kinds": ["numbers"]}, {"patterns": ["(("]}):
        with pytest.raises(ConfigError):
            KeepRules.of(**wrong)


KIND_EXAMPLES: list[tuple[str, str, list[str]]] = [
    ("placeholder", "$USER, $total$ US$A A$AP $5 costs", ["$USER", "$total$"]),
    ("placeholder", ":name (:id) Schüler:innen std::vector 10:30 a: b", [":name", ":id"]),
    ("placeholder", "__x__ __first_name__ a__b__ ____", ["__x__", "__first_name__"]),
    ("placeholder", "%{x} #{x} @{x} [[x]] [x] {{{raw}}}", ["%{x}", "#{x}", "@{x}", "[[x]]", "{{{raw}}}"]),
    ("placeholder", "%1$@ %@ %ld %-10s %05.2f %s%d", ["%1$@", "%@", "%ld", "%-10s", "%05.2f", "%s", "%d"]),
    ("placeholder", "%Y-%m-%d %1, %name% %% 100%off 5 % d", ["%Y", "%m", "%d", "%1", "%name%", "%%"]),
    ("placeholder", "{count, number} { name } { $user } {a b}", ["{count, number}", "{ name }", "{ $user }"]),
    ("placeholder", "{% if x %} <%= x %> $t(key) $(VAR)", ["{% if x %}", "<%= x %>", "$t(key)", "$(VAR)"]),
    ("placeholder", "*|FNAME|* :smile: :+1: :not closed", ["*|FNAME|*", ":smile:", ":+1:", ":not"]),
    ("markup", '<x id="1"/> <0>a</0> <1/> &amp; &#39; &x <3', ['<x id="1"/>', "<0>", "</0>", "<1/>", "&amp;", "&#39;"]),
    ("markup", "<!-- a --> <!-- <!-- b -->", ["<!-- a -->", "<!-- b -->"]),
    ("mention", "@user, @a.b@c.social. @scope/pkg a@b.de @ x", ["@user", "@a.b@c.social", "@scope/pkg"]),
    ("hashtag", "#tag #1 C# &#39; a#b #標籤 # x", ["#tag", "#1", "#標籤"]),
    ("path", "/etc/passwd ~/a.py ./a/b ../../c", ["/etc/passwd", "~/a.py", "./a/b", "../../c"]),
    ("path", "src/x_y.md, and/or km/h text/html 1/2 / </b>", ["src/x_y.md"]),
    ("path", r"C:\a\b.txt D:/x \\host\share https://a/b", [r"C:\a\b.txt", "D:/x", r"\\host\share"]),
    ("path", "(README.md) a.tar.gz. Ende.Der z.B. .env", ["README.md", "a.tar.gz", ".env"]),
    (
        "code",
        "On 2024-12-31, 2024-12-31T12:00:00Z (978-3-16-148410-0)",
        ["2024-12-31", "2024-12-31T12:00:00Z", "978-3-16-148410-0"],
    ),
    ("code", "Call +49 30 123456 or +1 (555) 123-4567.", ["+49 30 123456", "+1 (555) 123-4567"]),
    ("code", "v1.2.3, V2 and 1.2.3-rc1, 2.0b1. 3.5 10:30", ["v1.2.3", "V2", "1.2.3-rc1", "2.0b1"]),
    (
        "code",
        "ISO-8859-1, B2-Niveau COVID-19. MP3s USA 1990S x2 20-year-old 2nd 12km pages 3-5",
        ["ISO-8859-1", "B2", "COVID-19"],
    ),
    ("emoji", "Nice :-) yes ;) no :( <3, but (a:b) f(x=(1)) :) 10:30 x=)", [":-)", ";)", ":(", "<3", ":)"]),
    ("placeholder", "Use `make test` and ``x'' `a' <?php echo 1 ?>", ["`make test`", "<?php echo 1 ?>"]),
    ("escape", r"a\nb \t \u00e4 \x41 \beta \d", [r"\n", r"\t", r"\u00e4", r"\x41"]),
]


@pytest.mark.parametrize(("kind", "text", "spans"), KIND_EXAMPLES)
def test_spans_of_a_kind(kind: str, text: str, spans: list[str]) -> None:
    assert kept(text, kind) == spans


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(st.sampled_from("a1_ .,:/\\$%&#@<>{}[]()|*+-!\"'ä東\u0301👍\ufe0f\u20e3"), max_size=30))
@settings(max_examples=30, deadline=None)
def test_a_kind_is_found_wherever_its_pattern_matches(kind: str, text: str) -> None:
    """The signs that save the search for a kind never hide one of its spans."""
    found = [match[0].strip() for match in regex.compile(KINDS[kind], regex.V1).finditer(text)]
    assert kept(text, kind) == [each for each in found if each]


HOSTILE = [
    "1",
    "a",
    "a@",
    "a@b",
    "<!--",
    "<a",
    "&a",
    "{a:",
    "{{ ",
    "%(a",
    "www.",
    "1,",
    "1.1,",
    "🐶\u200d",
    "%-",
    "%0",
    "{{a",
    "a.",
    "a.com/(",
    "../",
    "a/b",
    "[[",
    "*|",
    "$t(",
    "{ ",
    "__a",
    "@a.",
    "\\u",
    "http://(",
    "+1 ",
    "1-",
    "A-",
    "A1",
    "1.1-",
    "v1.",
    "`a",
]


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_take_linear_time(kind: str) -> None:
    """A pattern that scans the rest of the text from every start would take seconds for the longest of these."""
    hostile = (text for sign in HOSTILE for text in (sign * 10_000, sign + sign[-1] * 20_000, sign[0] * 20_000))
    for text in dict.fromkeys(hostile):
        began = time.process_time()
        kept(text, kind)
        assert time.process_time() - began < 1.2, (kind, text[:9])


def test_a_pattern_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.inference.control.keep._TIME_LIMIT", 0.05)
    with pytest.raises(ConfigError, match="takes longer than"):
        kept("a" * 64 + "!", patterns=(r"(?:a?){64}a{64}b|(a|aa)+$",))


@pytest.mark.parametrize(
    ("forms", "text", "times"),
    [
        (("Hund",), "Hund, Hunde Schäferhund (Hund)", 2),
        (("Hund", "Hunde"), "Hund, Hunde Schäferhund (Hund)", 3),
        (("a b", "b c"), "a b c a b", 2),
        (("a b a",), "a b a b a", 1),
        (("犬",), "大犬犬", 2),
        (("e",), "e e\u0301 cafe\u0301", 1),
        ((". x",), "a. x . xy", 1),
    ],
)
def test_a_phrase_consists_of_whole_words(forms: tuple[str, ...], text: str, times: int) -> None:
    phrase = Phrase(forms)
    assert phrase.times(text) == times
    assert all(text[start:end] in forms for start, end in phrase.find(text))


@pytest.mark.parametrize(
    ("glossary", "text", "terms", "spans"),
    [
        ({"#sheep": "#Schaf"}, "Julia buys #sheep flowers.", ["#Schaf"], []),
        ({"5G": "5G-Netz"}, "5G works in 5 towns.", ["5G-Netz"], ["5"]),
        ({"5 dogs": "fünf Hunde"}, "5 dogs and 6 cats", ["fünf Hunde"], ["6"]),
        ({"dog": "Hund"}, "A dog at https://dog.org/dog", ["Hund"], ["https://dog.org/dog"]),
        ({"5 menu": "Menü 5"}, "A €5 menu and -5 menu", ["Menü 5", "Menü 5"], []),
        ({"US$": "USD", "% off": "Rabatt"}, "US$7 or 10 % off", ["USD", "Rabatt"], ["7", "10"]),
        ({"black sheep": "Schaf"}, "#black sheep, #blacksheep", ["Schaf"], ["#blacksheep"]),
        ({"sheep": "Schaf"}, "#sheep {sheep} `sheep`", [], ["#sheep", "{sheep}", "`sheep`"]),
        ({"Version v1": "Fassung 1"}, "Version v1.2", [], ["v1.2"]),
    ],
)
def test_a_term_that_contains_a_protected_span_is_translated(
    glossary: dict[str, str], text: str, terms: list[str], spans: list[str]
) -> None:
    control = Control.of((), glossary, ["all"])
    assert control is not None
    requirements = control.requirements(text)
    assert [form for phrase in requirements.required for form in phrase.alternatives] == terms
    assert [span.text for span in requirements.spans] == spans
    assert requirements.is_met_by(" ".join([*terms, *spans]))
    assert not requirements.is_met_by(text) or not terms


def test_required_spans_are_counted() -> None:
    control = Control.of([["Hund", "Hunde"]], {"cat": "Katze"}, ["number"])
    assert control is not None
    requirements = control.requirements("Dog 7 cat 7")
    assert requirements.is_met_by("Hunde 7 Katze, 7")
    assert not requirements.is_met_by("Hunde 7 Katze")  # a number is missing
    assert not requirements.is_met_by("Hunde 7 7 Katze 7")  # one too many
    assert not requirements.is_met_by("Hunde 77 7 Katze")
    assert not requirements.is_met_by("7 Katze 7")
    assert not requirements.is_met_by("Hunde 7 Katzen, 7")  # another word
    again = Control.of(["Raum 7", "Raum 7"], None, ["number"])
    assert again is not None
    assert again.requirements("7").is_met_by("7 Raum 7 Raum 7") and not again.requirements("7").is_met_by("7 Raum 7")
    assert Control.of() is None
