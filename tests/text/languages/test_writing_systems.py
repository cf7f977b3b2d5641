"""Writing systems of language codes, checked with CLDR's likely scripts of babel, and words of text without spaces."""

import unicodedata

import pytest
from babel.core import get_global
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.languages.usual_scripts import WritingSystem, writing_system
from dragoman.text.words import count_words, is_unspaced_text


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ("zh zho chi cmn zh-CN zh_TW zh-Hant-HK yue zh-yue wuu lzh nan cjy cmn_Hans zho_Hant", ("zh", "Hani")),
        ("ja jpn ja-JP ja_JP.UTF-8 jpn_Jpan", ("ja", "Jpan")),
        ("ko kor kor_Hang ko-KR", ("ko", "Kore")),
        ("th tha tha_Thai th_TH.UTF-8", ("th", "Thai")),
        ("my mya bur mya_Mymr", ("my", "Mymr")),
        ("zh-Latn cmn_Latn", ("zh", "Latn")),
        ("de deu ger deu_Latn de-AT DE de_DE@euro", ("de", "Latn")),
        ("am amh", ("am", "Ethi")),
    ],
)
def test_codes_of_one_language(codes: str, expected: tuple[str, str]) -> None:
    for code in codes.split():
        assert writing_system(code) == WritingSystem(*expected), code


@pytest.mark.parametrize("name", ["Japanese", "xx", "12", "", "source", "to:ja"])
def test_other_texts_name_no_language(name: str) -> None:
    assert writing_system(name) is None


@pytest.mark.parametrize("code", "zh ja th lo km my bo dz yue ii shn".split())
def test_scripts_without_spaces(code: str) -> None:
    system = writing_system(code)
    assert system is not None and not system.is_spaced


@pytest.mark.parametrize("code", "en de ru el ar he hi am ko vi ka hy ta mn tr zh-Latn ja-Latn".split())
def test_scripts_with_spaces(code: str) -> None:
    system = writing_system(code)
    assert system is not None and system.is_spaced
    if "-" not in code:  # CLDR's likely subtags, as babel has them
        likely = str(get_global("likely_subtags")[code]).split("_")
        assert system.script in likely


SENTENCES = {
    "ja": "ねこはソファーの上でねている。",
    "zh": "猫在沙发上睡觉。",
    "th": "แมวนอนอยู่บนโซฟา",
    "my": "ကြောင်သည် ဆိုဖာပေါ်တွင် အိပ်နေသည်။",
    "bo": "ཞི་མི་ཉལ་བསྡད་འདུག།",
    "km": "ឆ្មាកំពុងដេកលើសាឡុង។",
}


def test_text_without_spaces_is_recognised() -> None:
    assert all(is_unspaced_text([text]) for text in SENTENCES.values())
    assert is_unspaced_text(["", "2024", SENTENCES["ja"], "PDF"])
    for text in (
        "A cat sleeps.",
        "고양이가 소파에서 잔다.",
        "Кошка спит.",
        "بلی سو رہی ہے",
        "",
        "123 …",
        "Der Film 七人の侍 lief.",
    ):
        assert not is_unspaced_text([text])


def test_words_of_scripts_without_spaces_are_characters() -> None:
    assert count_words("猫在沙发上睡觉。") == 7
    assert count_words("「猫」 は iPhone を 買った。") == 7  # 猫, は, iPhone, を, 買, っ, た
    assert count_words("データ") == 3
    letters = [character for character in SENTENCES["th"] if not unicodedata.category(character).startswith("M")]
    assert count_words(SENTENCES["th"]) == len(letters)


@given(st.text(alphabet=st.characters(max_codepoint=0x0DFF)))
def test_words_of_scripts_with_spaces_are_separated_by_blanks(text: str) -> None:
    assert count_words(text) == len(text.split())
