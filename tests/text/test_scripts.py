"""Scripts: Unicode's properties, names of scripts, and the scripts of languages."""

import sys
import unicodedata

import pytest
import regex
from fontTools.unicodedata import Scripts

from dragoman.text.languages.usual_scripts import language_scripts
from dragoman.text.scripts import character_scripts, dominant_system, parse_script, scripts_of

FLORES_200 = """
ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn als_Latn amh_Ethi apc_Arab arb_Arab ars_Arab
ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn bak_Cyrl bam_Latn ban_Latn bel_Cyrl bem_Latn
ben_Beng bho_Deva bjn_Arab bjn_Latn bod_Tibt bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn cjk_Latn ckb_Arab
crh_Latn cym_Latn dan_Latn deu_Latn dik_Latn dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn est_Latn eus_Latn ewe_Latn
fao_Latn fij_Latn fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gaz_Latn gla_Latn gle_Latn glg_Latn grn_Latn guj_Gujr
hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn isl_Latn ita_Latn
jav_Latn jpn_Jpan kab_Latn kac_Latn kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor kaz_Cyrl kbp_Latn kea_Latn khk_Cyrl
khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kmr_Latn knc_Arab knc_Latn kon_Latn kor_Hang lao_Laoo lij_Latn lim_Latn
lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn lua_Latn lug_Latn luo_Latn lus_Latn lvs_Latn mag_Deva mai_Deva mal_Mlym
mar_Deva min_Arab min_Latn mkd_Cyrl mlt_Latn mni_Beng mos_Latn mri_Latn mya_Mymr nld_Latn nno_Latn nob_Latn npi_Deva
nso_Latn nus_Latn nya_Latn oci_Latn ory_Orya pag_Latn pan_Guru pap_Latn pbt_Arab pes_Arab plt_Latn pol_Latn por_Latn
prs_Arab quy_Latn ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Olck scn_Latn shn_Mymr sin_Sinh slk_Latn slv_Latn
smo_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn swh_Latn szl_Latn
tam_Taml taq_Latn taq_Tfng tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi tpi_Latn tsn_Latn tso_Latn tuk_Latn
tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn urd_Arab uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn
xho_Latn ydd_Hebr yor_Latn yue_Hant zho_Hans zho_Hant zsm_Latn zul_Latn
""".split()
"""The codes of the languages of FLORES-200 (NLLB Team 2022), each with the script of its texts."""


def test_letters_have_the_scripts_of_another_implementation_of_unicode() -> None:
    """The library `regex` has the property Script, too."""
    letters = [chr(code) for code in range(0, sys.maxunicode, 5) if unicodedata.category(chr(code))[0] == "L"]
    text, checked = "".join(letters), 0
    for code, name in Scripts.NAMES.items():
        if code in ("Zyyy", "Zinh", "Zzzz", "Hrkt"):
            continue
        try:
            pattern = regex.compile(rf"\p{{Script={name}}}")
        except regex.error:  # a script of a newer version of Unicode
            continue
        for letter in pattern.findall(text):
            assert character_scripts(letter) == scripts_of(code), (letter, code)
            checked += 1
    assert checked > 0.95 * len(letters) > 20_000


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("コーヒー", "Jpan"),
        ("ーー", "Jpan"),
        ("東京都庁舎", "Hani"),
        ("日本国憲法の前文", "Jpan"),
        ("人人有资格享有本宣言所载的一切权利和自由，不分种族、肤色、性别", "Hanb"),
        ("我用GitHub和VSCode写代码", "Hani"),
        ("한국어", "Kore"),
        ("大韓民國 헌법 제1조", "Kore"),
        ("ㄅㄆㄇㄈ", "Hanb"),
        ("𑨋𑨆", "Zanb"),
        ("ᦀᦑᦟᦹᧉ", "Talu"),
        ("ᐃᓄᒃᑎᑐᑦ", "Cans"),
        ("የሰው ልጅ", "Ethi"),
        ("ភាសាខ្មែរ", "Khmr"),
        ("Ωmega ist griechisch", "Latn"),
        ("ＦＵＬＬ", "Latn"),
        ("42 %, 👍🏽 µ", None),
        ("", None),
    ],
)
def test_the_writing_system_of_a_text(text: str, system: str | None) -> None:
    assert dominant_system(text) == system


@pytest.mark.parametrize(
    ("name", "scripts"),
    [
        ("latin", {"Latn"}),
        ("Cyrl", {"Cyrl"}),
        ("HAN", {"Hani"}),
        ("kana", {"Hrkt"}),
        ("hiragana", {"Hrkt"}),
        ("jpan", {"Hani", "Hrkt"}),
        ("Kore", {"Hang", "Hani"}),
        ("canadian", {"Cans"}),
        ("new_tai-lue", {"Talu"}),
        ("zanabazar square", {"Zanb"}),
        ("Latf", {"Latn"}),
    ],
)
def test_names_of_scripts(name: str, scripts: set[str]) -> None:
    assert parse_script(name) == scripts


def test_invalid_names_of_scripts_are_explained() -> None:
    with pytest.raises(ValueError, match="unknown script 'cyrilic': did you mean cyrillic"):
        parse_script("cyrilic")
    assert parse_script("old") > {"Hung", "Ital", "Perm"}
    for name in ("", "Zyyy", "xx"):
        with pytest.raises(ValueError, match="unknown script"):
            parse_script(name)


def test_every_language_of_flores_has_its_script_without_naming_it() -> None:
    assert len(FLORES_200) > 190
    for code in FLORES_200:
        language, _, script = code.partition("_")
        expected = scripts_of("Kore" if script == "Hang" else script)
        assert language_scripts(code) == expected, code
        assert expected <= language_scripts(language), code


@pytest.mark.parametrize(
    ("code", "scripts"),
    [
        ("ja", {"Hani", "Hrkt"}),
        ("jpn", {"Hani", "Hrkt"}),
        ("ko-KR", {"Hang", "Hani"}),
        ("zh_TW", {"Bopo", "Hani"}),
        ("cmn_hans", {"Bopo", "Hani"}),
        ("hak", {"Bopo", "Hani"}),
        ("deu_1996", {"Latn"}),
        ("pes_1", {"Arab"}),
        ("pt_BR.UTF-8", {"Latn"}),
        ("sr", {"Cyrl", "Latn"}),
        ("sr-Latn-RS", {"Latn"}),
        ("dzo", {"Tibt"}),
        ("xx", set()),
        ("und", set()),
        ("qaa", set()),
        ("English", set()),
        ("", set()),
    ],
)
def test_scripts_of_languages(code: str, scripts: set[str]) -> None:
    assert language_scripts(code) == scripts
