"""Numbers are kept with their signs and units."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decode.search import SearchConfig
from dragoman.inference.control.control import Control
from dragoman.inference.control.keep import KeepRules
from dragoman.inference.control.numbers import digits_of, loses_sign
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.request import Request
from dragoman.models.interface import LengthLimit, LengthLimits
from dragoman.text.tokenizers import TextConfig, train_tokenizers

RULES = KeepRules(("number",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "€5 or 5 € or 5€ or $5.50, US$10m, A$ 3, R$ 5, ₹500, ₿2, £5bn",
            "€5|5 €|5€|$5.50|US$10m|A$ 3|R$ 5|₹500|₿2|£5bn",
        ),
        ("5%, 5 %, 5\u00a0%, 3‰ and 0.5‱", "5%|5 %|5\u00a0%|3‰|0.5‱"),
        ("100%s, 5 %d, 5% of 5%%", "100|5|5%|5"),
        ("-5, −5, +5, ±5, ~50, ≈50, ≥5, -$5, $-5, (-5)", "-5|−5|+5|±5|~50|≈50|≥5|-$5|$-5|-5"),
        ("A-5, 3-5, a+5, 1990-2000", "5|3|5|5|1990|2000"),
        ("20°C, 20 °C, 20\u202f°C, 20°, 20 °F, 5′ 3″", "20°C|20 °C|20\u202f°C|20°|20 °F|5′|3″"),
        (
            "5km, 5\u00a0km, 10kg, 90min, 24h, 3x, 2×4, 1920x1080, 16:9",
            "5km|5\u00a0km|10kg|90min|24h|3x|2×4|1920x1080|16:9",
        ),
        ("5 km, 5 x", "5|5"),  # the words are translated
        ("4K, 5G, 3D, 1080p, 16GB, 5MB/s, 3.5GHz, 5m², 5½, 50+", "4K|5G|3D|1080p|16GB|5MB|3.5GHz|5m²|5½|50+"),
        ("1st, 5th, 80s, 1990s, 5pm, 2nd, 5kmx, B2", ""),  # translated, or of another kind
        ("#5, №5, № 7, §5, § 5, §§ 5, &#123;, x#5", "#5|№5|№ 7|§5|§ 5|§§ 5|123|5"),
        ("$10 5 $x 5 $ 10", "$10|5|5 $|10"),
        ("٣٪ und ५०%", "٣|५०%"),
    ],
)
def test_signs_and_units_belong_to_numbers(text: str, expected: str) -> None:
    assert "|".join(span.text for span in RULES.find(text)) == expected


@pytest.mark.parametrize(
    ("source", "translation", "loses"),
    [
        ("It costs €5.", "Es kostet 5.", True),
        ("It costs €5.", "Es kostet 5 €.", False),
        ("It costs €5.", "Es kostet fünf Euro.", False),
        ("$5 and $6", "5 $ und 6", True),
        ("$5 and $6", "5 Dollar und 6 $", False),
        ("US$5", "5 US-Dollar", False),
        ("up 5%", "plus 5 Prozent", False),
        ("up 5‰", "plus 5", True),
        ("at -5 °C", "bei 5 °C", True),
        ("at -5 °C", "bei −5\u00a0°C", False),
        ("at 20 °C", "bei 20 °F", True),
        ("a 5km run", "ein 5 km langer Lauf", False),
        ("a 5km run", "ein Lauf von 5", True),
        ("3x faster", "3 mal so schnell, z. B. extra", True),
        ("see § 5", "siehe 5", True),
        ("see 5", "siehe 5", False),
    ],
)
def test_signs_and_units_must_survive(source: str, translation: str, loses: bool) -> None:
    assert loses_sign(source, translation) is loses


def test_a_number_without_signs_may_get_some() -> None:
    """`5 percent` may become `5 %`, but `5 %` must not become `5`."""
    plain = Control(keep=RULES).requirements("5 percent of 7")
    assert plain.is_met_by("5 % von 7") and not plain.is_met_by("5 % von 7, 5")
    signed = Control(keep=RULES).requirements("5 % of 5")
    assert signed.is_met_by("5 % von 5") and not signed.is_met_by("5 von 5")


@given(st.text(st.sampled_from("5€%$-−+§ #\u00a0\u202fkmx.,°CA½/&")))
def test_numbers_contain_their_digits(text: str) -> None:
    spans = RULES.find(text)
    for span in spans:
        digits = digits_of(span.text)
        assert digits in span.text and digits[0] == "5" and digits_of(digits) == digits
    assert sum(map(str.isdigit, "".join(span.text for span in spans))) <= sum(map(str.isdigit, text))


@pytest.mark.parametrize("unit", ["5 ", "-5-5", "5x", "$5 $", "5,", "5\u00a0", "A$", "§§", "5kmx", "5 %%"])
def test_numbers_are_found_in_linear_time(unit: str) -> None:
    start = time.process_time()
    RULES.find(unit * (50_000 // len(unit)))
    assert time.process_time() - start < 2


def test_only_odd_spaces_and_forms_that_the_vocabulary_lacks_are_replaced() -> None:
    limits = LengthLimits(LengthLimit("source", None, ""), LengthLimit("target", None, ""))
    texts = ["a dog runs 5 km .", "a dog"], ["ein Hund ."]
    request = Request(SearchConfig(), control=Control(keep=RULES))

    def sources(*texts: str) -> list[list[int]]:
        return [list(row.source) for row in codec.encode_rows([(text, request) for text in texts], [1] * len(texts))]

    codec = Codec(train_tokenizers(TextConfig.model_validate({"subword": {"size": 300}}), *texts), limits)
    assert sources("a\u00a0dog runs\u202f.") == sources("a dog runs .") != sources("adog runs .")
    (row,) = codec.encode_rows([("a\u00a0dog 5\u00a0km", request)], [1])
    ((alternative, *_),) = row.constraints
    assert alternative.label.text == "5\u00a0km"
    known = train_tokenizers(
        TextConfig.model_validate({"subword": {"size": 300}}), ["a\u00a0dog ."] * 9 + ["ａ dog ."] * 9, ["ein Hund ."]
    )
    codec = Codec(known, limits)
    assert sources("a\u00a0dog") != sources("a dog") != sources("ａ dog") and sources("a ｄog") == sources("a dog")
