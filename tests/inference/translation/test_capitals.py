"""Texts in capital letters and in title case are translated in usual letters, the former back into capitals."""

import pytest

from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.capitals import Capitals
from dragoman.inference.translation.line_division import LineDivision
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig

LINES = ["The dog saw Julia at NATO today.", "The cat sleeps.", "Der Hund schläft.", "İstanbul ılık, iyi bir gün."] * 20
TITLES = [
    "A black dog is running with small children from the park.",
    "I think the cat sleeps near New York City Hall.",
]
TOKENIZER = train_tokenizers(TextConfig(subword=BPEConfig(size=420)), LINES, LINES).source
TITLED = train_tokenizers(TextConfig(subword=BPEConfig(size=600)), TITLES * 20, TITLES * 20).source
HEADLINES = Capitals(TITLED, ("en", "de"))
ENGLISH = Capitals(TOKENIZER, ("en", "de"))
REQUEST = Request(SearchConfig())


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("THE DOG SAW JULIA TODAY.", "The dog saw Julia today."),
        ("«THE CAT» AT NATO!", "«The cat» at NATO!"),
        ("DER HUND SCHLÄFT.", "Der Hund schläft."),
        ("THE DOG, 5 DOGS", "The dog, 5 dogs"),
        ("THE DOG {dog} SAW %s AND {JULIA}", "The dog {dog} saw %s and {JULIA}"),
        ("THE CAT SLEEPS: HTTPS://EXAMPLE.ORG/CAT OR www.example.org/Cat", None),
        ("DER HUND SAW ISO-8859-1 TODAY, 5 kg", "Der Hund saw ISO-8859-1 today, 5 kg"),
        ("SLEEPS", "Sleeps"),
    ],
)
def test_the_usual_spelling_is_that_of_the_vocabulary(text: str, usual: str | None) -> None:
    usual = usual or "The cat sleeps: HTTPS://EXAMPLE.ORG/CAT or www.example.org/Cat"
    assert ENGLISH.includes(text) and ENGLISH.usual(text) == usual
    assert not ENGLISH.includes(usual)


@pytest.mark.parametrize("text", ["NATO", "The DOG", "A B C", "", "犬が走る。", "12 – 34", "X 5 Y"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert not ENGLISH.includes(text)


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        (
            "A Black Dog Is Running With Small Children From The Park.",
            "A black dog is running with small children from the park.",
        ),
        ("A Black Dog Is Running with Small Children", "A black dog is running with small children"),
        ("I Think I Think The Cat Sleeps Near NATO", "I think I think the cat sleeps near NATO"),
        ("The Children: Running Cat Sleeps From New", "The children: running cat sleeps from New"),
    ],
)
def test_title_case_is_translated_in_usual_letters(text: str, usual: str) -> None:
    assert HEADLINES.is_title(text) and HEADLINES.includes(text) and HEADLINES.usual(text) == usual
    assert not HEADLINES.includes(usual), "the usual spelling is no title"
    line = LineDivision("en", lambda *_: True, capitals=HEADLINES).divide(text, REQUEST)
    assert [each for each, _ in line.texts()] == [usual] and not line.is_plain
    (joined,) = line.join([[Translation("Ein schwarzer Hund", 0.0, 0.0, (), TITLED)]])
    assert joined.text == "Ein schwarzer Hund", "not in title case, which the target language may not have"


@pytest.mark.parametrize(
    "text",
    [
        "A black dog is running with small children from the park.",
        "Near New York City Hall",
        "I think Julia, Tom and Mary saw New York City Hall.",
        "A Dog Is",
        "A Black dog Is running With small Children",
        "Running",
        "",
        "犬が走る。",
    ],
)
def test_names_and_usual_letters_are_no_title(text: str) -> None:
    assert not HEADLINES.includes(text)


def test_german_nouns_are_no_title() -> None:
    text = "A Black Dog Is Running With Small Children"
    assert Capitals(TITLED, (None, None)).is_title(text)
    assert not Capitals(TITLED, ("de", "en")).is_title(text) and not Capitals(TITLED, ("de-AT", "en")).is_title(text)


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("Julia: THE DOG SLEEPS today.", "Julia: The dog sleeps today."),
        ("Julia saw THE XQZW today.", None),
        ("Julia at NATO, UNHCR UNICEF today.", None),
    ],
)
def test_known_words_in_capitals_within_a_sentence(text: str, usual: str | None) -> None:
    assert ENGLISH.includes(text) == (usual is not None) and ENGLISH.usual(text) == (usual or text)
    assert not ENGLISH.is_upper(text), "the translation is not written in capitals"


def test_code_in_a_translation_keeps_its_letters() -> None:
    source = "THE DOG {dog} SAW JULIA AND 5 kg: https://Example.org/a"
    assert ENGLISH.is_upper(source) and ENGLISH.is_upper("DIE STRAßE")
    written = ENGLISH.capitalise("Der Hund {dog} sah 5 kg: https://Example.org/a", source)
    assert written == "DER HUND {dog} SAH 5 kg: https://Example.org/a"


def test_greek_capitals_have_no_accents() -> None:
    lines = ["Ο μικρός σκύλος κοιμάται ήσυχος, η Μαΐου."] * 20
    greek = Capitals(train_tokenizers(TextConfig(subword=BPEConfig(size=420)), lines, lines).source, ("el", "el"))
    assert greek.usual("Ο ΜΙΚΡΟΣ ΣΚΥΛΟΣ ΚΟΙΜΑΤΑΙ") == "Ο μικρός σκύλος κοιμάται"
    assert greek.capitalise("Ο μικρός σκύλος, é ΐ", "") == "Ο ΜΙΚΡΟΣ ΣΚΥΛΟΣ, É Ϊ"


def test_the_english_pronoun_keeps_its_capital_letter() -> None:
    assert ENGLISH.usual("THE DOG I SAW") == "The dog I saw"
    assert Capitals(TOKENIZER, ("fr", "en")).usual("THE DOG I SAW") == "The dog i saw"


def test_turkish_has_two_letters_i() -> None:
    turkish = Capitals(TOKENIZER, ("tr", "tr"))
    assert turkish.usual("ISTANBUL ILIK") == "ıstanbul ılık"[:1].upper() + "stanbul ılık"
    assert turkish.usual("İYİ BİR GÜN") == "İyi bir gün"
    assert turkish.capitalise("iyi ılık", "") == "İYİ ILIK"
    assert ENGLISH.capitalise("iyi ılık", "") == "IYI ILIK"


def test_each_sentence_of_a_line_is_restored_and_capitalised() -> None:
    division = LineDivision("en", lambda *_: True, capitals=ENGLISH)
    line = division.divide("THE DOG SAW JULIA. The cat sleeps.", REQUEST)
    assert [text for text, _ in line.texts()] == ["The dog saw Julia.", "The cat sleeps."] and not line.is_plain
    results = [[Translation(text, 0.0, 0.0, (), TOKENIZER)] for text in ("Der Hund.", "Die Katze.")]
    (joined,) = line.join(results)
    assert joined.text == "DER HUND. Die Katze."
    assert [(part.source, part.translation) for part in joined.parts if not part.is_copied] == [
        ("THE DOG SAW JULIA.", "DER HUND."),
        ("The cat sleeps.", "Die Katze."),
    ]
    assert division.divide("The cat sleeps.", REQUEST).is_plain
    assert not division.divide("THE CAT SLEEPS.", REQUEST).is_plain


def test_a_text_in_capital_letters_is_not_divided_for_its_many_tokens() -> None:
    text = "THE DOG SAW JULIA, THE CAT SLEEPS TODAY"
    division = LineDivision("en", lambda *_: True, lambda part, _: len(TOKENIZER.encode(part)) < 20, ENGLISH)
    assert len(TOKENIZER.encode(text)) > 20 and len(division.divide(text, REQUEST).texts()) == 1


def test_a_prefix_is_continued_as_it_is() -> None:
    request = Request(SearchConfig(), prefix="Der")
    division = LineDivision("en", lambda *_: True, capitals=ENGLISH)
    assert division.divide("THE CAT SLEEPS.", request).texts() == [("THE CAT SLEEPS.", request)]
