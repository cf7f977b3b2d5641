"""The model card says what is known, and says so where nothing is."""

from dragoman.checkpoint.card import UNKNOWN, model_card
from dragoman.checkpoint.meta import Meta, Score, dump_meta, parse_meta


def test_card_carries_scores_with_signatures_languages_licence_and_data() -> None:
    meta = Meta(
        step=5,
        averaged_steps=(3, 5),
        source_language="en",
        target_language="de",
        licence="CC-BY-4.0",
        scores=(Score(metric="BLEU", value=39.123, signature="nrefs:1|case:lc", data="test.de"),),
        data={"train": "abc123"},
    )
    card = model_card(meta, {"model": {"width": 8, "encoder": {"layers": 2}, "preset": None}}, 12345)
    for part in ("en → de", "CC-BY-4.0", "12,345", "steps 3, 5", "39.12", "test.de", "abc123", "encoder.layers 2"):
        assert part in card
    assert "nrefs:1\\|case:lc" in card, "the bar of a signature would end the table's cell"
    assert "preset" not in card
    assert parse_meta(dump_meta(meta), "meta.json") == meta


def test_card_invents_nothing() -> None:
    card = model_card(Meta(step=0, libraries={}), {}, 1)
    assert "None recorded." in card
    assert "Not recorded." in card
    assert card.count(UNKNOWN) == 4
