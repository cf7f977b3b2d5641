"""The model card contains the known facts, and says so where nothing is known."""

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
    attention = {"kind": "soft", "scorer": {"kind": "dot"}, "projections": True}
    encoder = {"kind": "transformer", "layers": 2, "attention": attention, "limit": None, "positions": {"limit": None}}
    card = model_card(meta, {"model": {"width": 8, "encoder": encoder, "preset": None}}, 12345)
    assert "| Architecture | width 8 |\n" in card
    assert "| – encoder | transformer, layers 2, attention (soft, scorer dot, projections true) |\n" in card
    for part in ("en → de", "CC-BY-4.0", "12,345", "steps 3, 5", "39.12", "test.de", "abc123"):
        assert part in card
    assert "nrefs:1\\|case:lc" in card, "the bar of a signature would end the table's cell"
    assert "preset" not in card
    assert parse_meta(dump_meta(meta), "meta.json") == meta


def test_card_invents_nothing() -> None:
    card = model_card(Meta(step=0, libraries={}), {}, 1)
    assert "None recorded." in card
    assert "Not recorded." in card
    assert card.count(UNKNOWN) == 4


def test_card_names_the_word_vectors_that_tables_began_with() -> None:
    meta = Meta(step=5, embeddings={"source": 0.9912, "target": 0.5})
    for files, said in (
        ({"source": "en.vec", "target": "de.vec"}, "99.1% of the source from en.vec, 50.0% of the target from de.vec"),
        ({}, f"99.1% of the source from {UNKNOWN}"),
    ):
        assert said in model_card(meta, {"model": {"width": 8, "embeddings": files}}, 1)
    assert "Word vectors" not in model_card(Meta(step=5), {"model": {"embeddings": {"source": None}}}, 1)
