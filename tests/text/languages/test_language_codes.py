"""Language codes: the same language in every standard, scripts and regions, and the order of preference."""

import langcodes
import pytest

from dragoman.text.languages.codes import match_language_codes, parse_language_code

ALL_STANDARDS = [
    ("en", "eng"), ("de", "deu"), ("de", "ger"), ("fr", "fra"), ("fr", "fre"), ("zh", "zho"), ("zh", "chi"),
    ("zh", "cmn"), ("cs", "cze"), ("fa", "per"), ("fa", "pes"), ("ro", "rum"), ("ro", "mo"), ("he", "iw"), ("id", "in"),
    ("ar", "arb"), ("sw", "swh"), ("ms", "zsm"), ("nb", "no"), ("lv", "lvs"), ("sq", "als"), ("fil", "tl"),
    ("my", "bur"),
]  # fmt: skip


@pytest.mark.parametrize(("two", "three"), ALL_STANDARDS)
def test_codes_of_all_standards_are_the_same_language(two: str, three: str) -> None:
    for first, second in ((two, three), (three, two), (two.upper(), three.upper())):
        assert match_language_codes(first, second) == 0


@pytest.mark.parametrize(
    ("requested", "code", "rank"),
    [
        ("en-US", "EN_US", 0),
        ("en-US", "en_us.UTF-8", 0),
        ("en_US", "eng-US", 0),
        ("en", "en-GB", 1),
        ("en-GB", "en", 2),
        ("en-GB", "en-US", None),
        ("de", "de-1996", 0),
        ("en", "de", None),
        ("pt-BR", "pt-PT", None),
        ("pt", "pt_BR", 1),
        ("zh", "zh-TW", 1),
        ("zh-TW", "zh-Hant", 1),
        ("zh-Hant", "zh-TW", 1),
        ("zh-CN", "zh-Hans", 1),
        ("zh-CN", "zh-TW", None),
        ("zh-CN", "zh", 2),
        ("zh-TW", "zh", None),
        ("sr", "sr-Latn", 1),
        ("sr-Latn", "sr", None),
        ("sr-Latn", "sr_RS@latin", 1),
        ("sr-Latn", "sh", 0),
        ("es-419", "es-MX", None),
        ("yue", "zh-yue", 0),
        ("klingon-text", "KLINGON_TEXT", 0),
        ("x-own", "X-OWN", 0),
        ("en", "", None),
        ("en", "*all*", None),
    ],
)
def test_regions_and_scripts(requested: str, code: str, rank: int | None) -> None:
    assert match_language_codes(requested, code) == rank


def test_every_two_letter_code_differs_from_all_others() -> None:
    codes = sorted({chr(a) + chr(b) for a in range(97, 123) for b in range(97, 123)})
    valid = [code for code in codes if langcodes.tag_is_valid(code)]
    assert len(valid) > 150
    parsed = {code: parse_language_code(code).language for code in valid}
    twins = {code for code in valid if sum(other == parsed[code] for other in parsed.values()) > 1}
    assert twins == set("ak tw he iw id in ji yi jv jw mo ro nb no sh sr".split())
