"""Language identification, its confidence, and the meaning of language codes."""

import gzip
import os
import random
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import ConfigError
from dragoman.text.languages import detector as module
from dragoman.text.languages.codes import base_language, match_code
from dragoman.text.languages.detector import Detector, letter_pattern, variant_probabilities
from dragoman.text.languages.names import language_name
from dragoman.text.languages.usual_scripts import language_script

pytest.importorskip("py3langid")
pytest.importorskip("langcodes")

# The first sentence of the first article of the Universal Declaration of Human Rights.
SENTENCES = {
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "en": "All human beings are born free and equal in dignity and rights.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti.",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "nb": "Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw.",
    "pt-BR": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах.",
    "zh-Hans": "人人生而自由,在尊严和权利上一律平等。",
    "zh-Hant": "人人生而自由，在尊嚴和權利上一律平等。",
}
DATA = os.environ.get("DRAGOMAN_DATA")


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_detected(language: str) -> None:
    found = Detector(list(SENTENCES)).detect(SENTENCES[language])
    assert found[0].language == language
    assert found[0].confidence > 80
    assert sum(each.confidence for each in found) <= 100.5
    assert found == sorted(found, key=lambda each: -each.confidence)


@pytest.mark.parametrize("language", ["ar", "cs", "es", "el", "ja", "ko", "pl", "ru", "zh-Hans"])
def test_other_languages_are_not_detected_with_confidence(language: str) -> None:
    assert all(each.confidence < 20 for each in Detector(["en", "de", "fr"]).detect(SENTENCES[language]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "12 345,6",
        "…!?",
        "😀👍🏽",
        "\0",
        "{name} &amp; <br>",
        "https://example.org/the-way me@example.org",
        "你好",
        "Привет",
        "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
    ],
)
def test_unknown_languages(text: str) -> None:
    assert Detector(["en", "de", "fr"]).detect(text) == []


def test_a_single_language_is_not_always_detected() -> None:
    detector = Detector(["en"])
    assert detector.detect(SENTENCES["en"])[0] == ("en", pytest.approx(100, abs=1))
    assert all(each.confidence < 10 for each in detector.detect(SENTENCES["es"]))
    assert detector.detect(SENTENCES["ru"]) == []


def test_a_language_that_the_library_does_not_know_is_never_detected() -> None:
    detector = Detector(["tlh", "de", "de", "no code"])
    assert detector.undetected == ("tlh", "no code")
    assert [each.language for each in detector.detect(SENTENCES["de"])] == ["de"]
    assert Detector(["tlh"]).detect(SENTENCES["de"]) == Detector([]).detect(SENTENCES["de"]) == []


def test_variants_of_a_language_share_its_probability() -> None:
    text = SENTENCES["pt-BR"]
    (alone,) = Detector(["pt-BR"]).detect(text)
    first, second = Detector(["pt", "pt-BR"]).detect(text)
    assert (first.language, second.language) == ("pt", "pt-BR")
    assert first.confidence == second.confidence == pytest.approx(alone.confidence / 2, abs=0.1)


def test_variants_are_distinguished_by_their_letters() -> None:
    assert variant_probabilities("这个问题", ["zh-Hans", "zh-Hant"])[0] > 0.8
    assert variant_probabilities("這個問題", ["zh-Hans", "zh-Hant"])[0] < 0.2
    assert variant_probabilities("你好", ["zh", "zt"]) == [0.5, 0.5]
    assert variant_probabilities("Шта", ["sr", "sr-Latn"])[0] > 0.8
    assert variant_probabilities("Šta", ["sr", "sr-Latn"])[0] < 0.2
    assert variant_probabilities("123", ["sr", "sr-Latn"]) == [0.5, 0.5]
    assert sum(variant_probabilities("Šta", ["sr", "sr-Cyrl", "sr-Latn"])) == pytest.approx(1)


def test_a_language_of_several_scripts_is_detected_in_each() -> None:
    detector = Detector(["sr"])
    for text in ("Ne znam šta se danas dešava.", "Не знам шта се данас дешава."):
        assert detector.detect(text)[0].confidence > 90
    assert Detector(["sr-Cyrl"]).detect("Ne znam šta se danas dešava.") == []
    assert letter_pattern(["de", "no code"]).search("ᏣᎳᎩ")


def test_addresses_and_markup_are_not_read() -> None:
    detector = Detector(["en", "de"])
    plain = detector.detect("Das ist gut.")
    assert detector.detect('<p class="the one and only">Das ist gut.</p>') == plain
    assert detector.detect("Das https://www.the-one.org/and/only/way ist gut.") == plain


@pytest.mark.parametrize(
    "text", ["word " * 200_000, "<!--" * 250_000, "1" * 1_000_000, "a@" * 500_000, "<a" * 500_000, "{" * 1_000_000]
)
def test_long_and_hostile_texts_cost_no_more_than_others(text: str) -> None:
    detector = Detector(["en", "de"])
    detector.detect("warm")
    began = time.process_time()
    detector.detect(text)
    assert time.process_time() - began < 0.1


@cache
def some_languages() -> Detector:
    return Detector(["en", "zh-Hans", "zh-Hant", "ru"])


@given(st.text(max_size=60))
def test_any_text_has_an_answer_of_the_same_form(text: str) -> None:
    found = some_languages().detect(text)
    assert {each.language for each in found} <= {"en", "zh-Hans", "zh-Hant", "ru"}
    assert all(0 <= each.confidence <= 100 for each in found)
    assert not found or found[0].confidence > 0
    assert some_languages().detect(text) == found


def test_a_lone_surrogate_is_not_an_error() -> None:
    assert Detector(["en"]).detect("\ud800 the house")


@pytest.mark.skipif(DATA is None, reason="DRAGOMAN_DATA names no folder of corpora")
@pytest.mark.parametrize(("words", "least"), [(1, 0.84), (3, 0.97), (10, 0.995)])
def test_confidence_is_calibrated(words: int, least: float) -> None:
    detector, draw = Detector(["en", "de", "fr"]), random.Random(1)
    right, sure = [], []
    for language in ("en", "de", "fr"):
        path = Path(str(DATA)) / "multi30k" / f"test_2016_flickr.{language}.gz"
        for line in gzip.decompress(path.read_bytes()).decode().split("\n")[:500]:
            said = line.split()
            start = draw.randrange(max(1, len(said) - words + 1))
            found = detector.detect(" ".join(said[start : start + words]))
            if found:
                right.append(found[0].language == language)
                sure.append(found[0].confidence / 100)
    assert len(right) > 1200
    accuracy = sum(right) / len(right)
    assert accuracy > least
    assert sum(sure) / len(sure) == pytest.approx(accuracy, abs=0.06)
    ninety = [each for each, confidence in zip(right, sure, strict=True) if confidence >= 0.9]
    assert sum(ninety) / len(ninety) > 0.95


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ConfigError("this needs the package py3langid")

    monkeypatch.setattr(module, "_model", module._model.__wrapped__)  # not the model that is already loaded
    monkeypatch.setattr(module, "import_optional", missing)
    with pytest.raises(ConfigError, match="py3langid"):
        Detector(["en"])


@pytest.mark.parametrize(
    ("code", "known", "meant"),
    [
        ("de", "de en", "de"),
        ("DE", "de en", "de"),
        ("zh_hans", "zh-Hans", "zh-Hans"),
        ("zh", "zh-Hans zh-Hant", "zh-Hans"),
        ("zh-CN", "zh-Hant zh-Hans", "zh-Hans"),
        ("zh-TW", "zh-Hans zh-Hant", "zh-Hant"),
        ("zt", "zh-Hans zh-Hant", "zh-Hant"),
        ("zh-Hant", "zh zt", "zt"),
        ("zh-Hans", "zh zt", "zh"),
        ("pb", "pt pt-BR", "pt-BR"),
        ("pt-BR", "pt pb", "pb"),
        ("pt", "pt-BR", "pt-BR"),
        ("pt-PT", "pt-BR pt", "pt"),
        ("no", "nb nn", "nb"),
        ("nb", "no", "no"),
        ("iw", "he", "he"),
        ("he", "iw", "iw"),
        ("deu", "de", "de"),
        ("de", "deu", "deu"),
        ("en-US", "en", "en"),
        ("en", "en-GB de", "en-GB"),
        ("tl", "fil", "fil"),
        ("fr", "no-code fr-CA", "fr-CA"),
    ],
)
def test_codes_that_clients_send(code: str, known: str, meant: str) -> None:
    assert match_code(code, known.split()) == meant


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("da", "nb sv de"),
        ("nn", "nb"),
        ("uk", "ru"),
        ("zh-Hant", "zh-Hans zh"),
        ("zt", "zh"),
        ("yue", "zh"),
        ("af", "nl"),
        ("auto", "en"),
        ("", "en"),
        ("<script>", "en"),
        ("x" * 100_000, "en"),
        ("de\0", "de"),
    ],
)
def test_codes_of_no_known_language(code: str, known: str) -> None:
    assert match_code(code, known.split()) == code


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("en", "English"),
        ("zh-Hans", "Chinese (Simplified)"),
        ("zh_hant", "Chinese (Traditional)"),
        ("zt", "Chinese (Traditional)"),
        ("pb", "Portuguese (Brazil)"),
        ("nb", "Norwegian Bokmål"),
        ("iw", "Hebrew"),
        ("deu", "German"),
        ("de-AT", "German (AT)"),
        ("tlh", "tlh"),
        ("no code", "no code"),
    ],
)
def test_names(code: str, name: str) -> None:
    assert language_name(code) == name


def test_parts_of_codes() -> None:
    assert [base_language(code) for code in ("pb", "zh-Hans", "nb", "no code")] == ["pt", "zh", "nb", "no code"]
    scripts = {code: language_script(code) for code in ("zt", "zh", "sr", "sr-Latn", "no code")}
    assert scripts == {"zt": "Hant", "zh": "Hans", "sr": "Cyrl", "sr-Latn": "Latn", "no code": ""}
