"""Laws of comparing language codes: equivalence, canonical forms, and the ranks of matches."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.languages.codes import (
    base_language,
    bcp47,
    closest_code,
    is_language_code,
    is_same_language,
    match_language_codes,
    parse_language_code,
)
from dragoman.text.languages.names import language_name
from dragoman.text.languages.usual_scripts import language_script, language_scripts, writing_system
from dragoman.text.scripts import scripts_of

LANGUAGES = "en eng de deu ger fr fre zh zho cmn yue nan pt por sr srp sh no nb nob nn nno da he iw ar arb arz".split()
SCRIPTS = ("Latn", "Cyrl", "Hans", "Hant", "Arab")
REGIONS = ("US", "GB", "BR", "PT", "CN", "TW", "RS", "NO")

languages = st.sampled_from(LANGUAGES)
tags = st.builds(
    lambda *parts: "-".join(filter(None, parts)),
    languages,
    st.sampled_from(SCRIPTS) | st.none(),
    st.sampled_from(REGIONS) | st.none(),
)
invalid = st.text(max_size=12) | st.sampled_from(["", "x" * 50, "no code", "q", "12", "und", "qaa", "de-1", "zt", "pb"])
codes = tags | invalid


def spellings(code: str) -> list[str]:
    """Spellings that mean the same code."""
    return [code, code.upper(), code.lower(), code.replace("-", "_"), f"{code.replace('-', '_')}.UTF-8", f" {code} "]


@given(codes, codes, codes)
def test_the_same_language_is_an_equivalence(one: str, other: str, third: str) -> None:
    assert is_same_language(one, one)
    assert is_same_language(one, other) == is_same_language(other, one)
    if is_same_language(one, other) and is_same_language(other, third):
        assert is_same_language(one, third)


@given(tags)
def test_spellings_do_not_matter(code: str) -> None:
    for each in spellings(code):
        assert parse_language_code(each) == parse_language_code(code)
        assert match_language_codes(code, each) == 0
        assert closest_code(each, (code,)) == code
        assert language_scripts(each) == language_scripts(code)
        assert base_language(each).lower() == base_language(code).lower()


@given(languages, st.sampled_from(SCRIPTS) | st.none(), st.sampled_from(REGIONS) | st.none())
def test_script_and_region_do_not_change_the_language(language: str, script: str | None, region: str | None) -> None:
    code = "-".join(filter(None, (language, script, region)))
    parsed = parse_language_code(code)
    assert parsed.is_known and is_same_language(code, language)
    if language != "sh":  # sh is sr-Latn
        assert (parsed.stated_script, parsed.region) == (script, region)
    if script is not None:
        assert language_script(code) == script
        assert language_scripts(code) == scripts_of(script)


@given(codes, codes)
def test_only_codes_of_the_same_language_match(requested: str, code: str) -> None:
    rank, reverse = match_language_codes(requested, code), match_language_codes(code, requested)
    assert rank in (None, 0, 1, 2)
    if rank is not None:
        assert is_same_language(requested, code)
    assert (rank == 0) == (reverse == 0)
    if rank == 2:
        assert reverse == 1


@given(codes)
def test_the_language_alone_matches_all_its_variants(code: str) -> None:
    parsed = parse_language_code(code)
    if parsed.is_known:
        assert match_language_codes(parsed.language, code) in (0, 1)
        system = writing_system(code)
        assert system is not None
        assert language_scripts(code)


@given(codes, st.lists(codes, max_size=5))
def test_the_closest_code_is_one_of_the_known(code: str, known: list[str]) -> None:
    found = closest_code(code, tuple(known))
    assert found is None or found in known
    assert closest_code(code, (*known, code)) is not None
    if code in known:
        assert found == code


@given(codes)
def test_canonical_forms_are_fixed_points(code: str) -> None:
    parsed = parse_language_code(code)
    assert bcp47(bcp47(code)) == bcp47(code)
    if parsed.is_known:
        assert parse_language_code(parsed.language).language == parsed.language
        assert language_name(code)


@given(st.text(max_size=12))
def test_other_texts_are_no_codes(text: str) -> None:
    if is_language_code(text):
        assert parse_language_code(text).is_known


def test_codes_are_recognised_among_words() -> None:
    assert all(map(is_language_code, ("de", "pt_BR", "pt-br", "zh-Hant", "zh_Hant_TW", "eng_Latn")))
    assert not any(map(is_language_code, ("", "xx", "eng", "src", "DE", "json", "de-", "qaa_Latn", "abc_latn")))
