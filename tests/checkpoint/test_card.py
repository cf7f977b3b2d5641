"""The model card contains the known facts, is read by the Hugging Face Hub's library, and names no machine's paths."""

from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

import dragoman
from dragoman.checkpoint.card.card import model_card
from dragoman.checkpoint.card.markdown import UNKNOWN, without_folders
from dragoman.checkpoint.card.metadata import metric_identifier
from dragoman.checkpoint.meta import Meta, RecordedScore, dump_meta, parse_meta
from dragoman.text.languages.detector import sample_language

BLEU = RecordedScore(metric="BLEU", value=39.123, signature="nrefs:1|case:lc", data="/data/jo/my data/test.de")
ATTENTION = {"kind": "soft", "scorer": {"kind": "dot"}, "projections": True}
ENCODER = {"kind": "transformer", "layers": 2, "attention": ATTENTION, "limit": None, "positions": {"limit": None}}
PAIRS = {"source": "/data/jo/my data/train.en.gz", "target": "/data/jo/my data/train.de.gz"}


def metadata(card: str) -> Any:
    """The metadata as the Hub reads it. Its class declares no fields."""
    return ModelCard(card).data


def describe(meta: Meta, model: dict[str, Any] | None = None, **sections: Any) -> str:
    parameters = {"encoder.layers.0.w": 8, "encoder.layers.1.w": 8, "encoder.norm": 4, "decoder.w": 12325}
    return model_card(meta, {"model": model or {}, **sections}, parameters)


def test_card_carries_scores_with_signatures_languages_licence_and_data() -> None:
    meta = Meta(
        step=5,
        averaged_steps=(3, 5),
        source_language="en",
        target_language="de",
        licence="CC-BY-4.0",
        scores=(BLEU,),
        data={"/data/jo/my data/train.tsv": "abc123"},
    )
    card = describe(
        meta, {"width": 8, "encoder": ENCODER, "preset": None}, data={"train": {"pairs": "/data/jo/my data/train.tsv"}}
    )
    assert "| model | width 8 | 12,345 |\n" in card
    assert "| encoder | transformer, layers 2, attention (soft, scorer dot, projections true) | 20 |\n" in card
    assert "| – layers (2) |  | 16 |\n| – norm |  | 4 |\n| decoder |  | 12,325 |" in card
    for part in ("# Translation model, en → de", "CC-BY-4.0", "12,345", "steps 3, 5", "39.12", "test.de", "abc123"):
        assert part in card
    assert "nrefs:1\\|case:lc" in card, "the bar of a signature would end the table's cell"
    assert "preset" not in card
    assert "/data" not in card and "my data" not in card
    assert parse_meta(dump_meta(meta), "meta.json") == meta


def test_the_hub_reads_languages_licence_metrics_and_values() -> None:
    scores = (
        BLEU,
        RecordedScore(metric="chrF2", value=61.0, data="test.de"),
        RecordedScore(metric="loss", value=float("nan")),
    )
    meta = Meta(
        step=5, source_language="pt-BR", target_languages=("de", "zh-Hans"), licence="Apache-2.0", scores=scores
    )
    data = metadata(describe(meta, out="/data/jo/runs/ende"))
    assert data.language == ["pt", "de", "zh"] and data.language_bcp47 == ["pt-BR", "zh-Hans"]
    assert (data.license, data.library_name, data.pipeline_tag) == ("apache-2.0", "dragoman", "translation")
    assert data.metrics == ["bleu", "chrf"] and data.model_name == "ende"
    assert "dragoman" in data.tags
    first, second = data.eval_results
    assert (first.task_type, first.metric_type, first.metric_value, first.dataset_name) == (
        "translation",
        "bleu",
        39.123,
        "test.de",
    )
    assert first.metric_args == {"signature": "nrefs:1|case:lc"}
    assert (second.metric_type, second.metric_value) == ("chrf", 61.0)


def test_card_invents_nothing() -> None:
    card = describe(Meta(step=0, libraries={}))
    assert "None recorded." in card
    assert "Not recorded." in card
    assert card.count(UNKNOWN) == 4
    data = metadata(card)
    assert (data.language, data.license, data.datasets, data.metrics, data.eval_results) == (None,) * 5
    assert "add `license` to the metadata above" in card


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("CC BY 4.0", ("cc-by-4.0", None)),
        ("CC BY-NC 4.0", ("cc-by-nc-4.0", None)),
        ("MIT", ("mit", None)),
        ("ask us!", ("other", "ask-us")),
    ],
)
def test_only_licences_that_the_hub_knows_are_stated_by_identifier(licence: str, expected: tuple[str, str]) -> None:
    data = metadata(describe(Meta(step=1, licence=licence)))
    assert (data.license, data.license_name) == expected


@pytest.mark.parametrize(
    ("corpus", "languages"),
    [
        (PAIRS, ["en", "de"]),
        ([{"source": "a/x.en-de.en.txt", "target": "a/x.en-de.de.txt"}], ["en", "de"]),
        ({"pairs": "train.de-en.tsv.gz"}, ["de", "en"]),
        ({"pairs": "train.de-en.tsv.gz", "source_column": 2, "target_column": 1}, ["en", "de"]),
        ({"pairs": "memory.tmx", "source_code": "en", "target_code": "sv"}, ["en", "sv"]),
        ({"source": "train.src", "target": "train.trg"}, None),
        ({"pairs": "part-01.tsv"}, None),
    ],
)
def test_unstated_languages_are_those_in_the_names_of_the_files(corpus: Any, languages: list[str] | None) -> None:
    card = describe(Meta(step=1), data={"train": corpus})
    assert metadata(card).language == languages
    if languages:
        row = f"| Languages | {' → '.join(languages)} (guessed from the names of the data files) |"
        assert row in card
        stated = Meta(step=1, source_language="da", target_language="no")
        assert metadata(describe(stated, data={"train": corpus})).language == ["da", "no"]


def test_languages_that_no_name_contains_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.checkpoint.card.languages.sample_language", sample_language)
    sentences = {
        "source": ["The old man sat by the river and watched the boats go by in the morning."] * 3,
        "target": ["Der alte Mann saß am Fluss und sah am Morgen den Booten nach, die vorbeifuhren."] * 3,
    }
    card = model_card(Meta(step=1), {"model": {}}, {}, sentences)
    assert "| Languages | en → de (guessed from the texts) |" in card
    assert metadata(card).language == ["en", "de"]
    short = {side: [texts[0][:20]] for side, texts in sentences.items()}
    assert metadata(model_card(Meta(step=1), {"model": {}}, {}, short)).language is None


@pytest.mark.parametrize(
    ("config", "tag"),
    [
        ({"model": {"kind": "decoder_only"}}, "text-generation"),
        ({"model": {"kind": "ngram"}}, "text-generation"),
        ({"model": {"kind": "statistical"}}, "translation"),
        ({"model": {"kind": "encoder_only", "head": {"kind": "classification"}}}, "text-classification"),
        ({"model": {"kind": "encoder_only", "head": {"kind": "tagging"}}}, "token-classification"),
        ({"model": {"kind": "encoder_only", "head": {"kind": "chart"}}}, None),
        ({"model": {"kind": "node_classifier"}}, "graph-ml"),
        ({"model": {"kind": "word_aligner"}}, None),
        ({"model": {}, "task": {"kind": "summarization"}}, "summarization"),
        ({"model": {}, "task": {"kind": "denoising"}}, None),
        ({"model": {}, "text": {"vectors": {"width": 3}}}, "image-to-text"),
    ],
)
def test_every_kind_of_model_has_a_card_that_the_hub_reads(config: dict[str, Any], tag: str | None) -> None:
    card = metadata(model_card(Meta(step=1, scores=(BLEU,), data={"train.tsv": "ab"}), config, {"w": 3}))
    assert card.pipeline_tag == tag
    assert [each.metric_value for each in card.eval_results] == [39.123]
    assert card.datasets == ["train.tsv"]


def test_metrics_are_named_as_on_the_hub() -> None:
    names = ("chrF2", "ROUGE-L", "F1 (surface forms)", "macro F1", "EM", "Matthews correlation", "complete match")
    identifiers = ["chrf", "rouge", "f1", "f1", "exact_match", "matthews_correlation", "complete_match"]
    assert list(map(metric_identifier, names)) == identifiers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/train.en + /b b/c/train.de", "train.en + train.de"),
        ("/a/b.zip/x/wsj_01[0-6]?.mrg, d/e.mrg", "wsj_01[0-6]?.mrg, d/e.mrg"),
        ("see https://huggingface.co/docs/hub and text/plain", "see https://huggingface.co/docs/hub and text/plain"),
        ("| ~/data/x.tsv | `/tmp/y` |", "| x.tsv | `y` |"),
    ],
)
def test_absolute_paths_are_reduced_to_names(text: str, expected: str) -> None:
    assert without_folders(text) == expected


def test_card_names_the_word_vectors_that_tables_began_with() -> None:
    meta = Meta(step=5, embeddings={"source": 0.9912, "target": 0.5})
    for files, said in (
        ({"source": "en.vec", "target": "de.vec"}, "99.1% of the source from en.vec, 50.0% of the target from de.vec"),
        ({}, f"99.1% of the source from {UNKNOWN}"),
    ):
        assert said in describe(meta, {"width": 8, "embeddings": files})
    assert "Initial word vectors" not in describe(Meta(step=5), {"embeddings": {"source": None}})


def test_a_run_passes_its_validation_texts_to_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"The": "en", "Der": "de"}
    monkeypatch.setattr("dragoman.checkpoint.card.languages.sample_language", lambda texts: names[texts[0][:3]])
    pair = "The old man sat by the river every morning.\tDer alte Mann saß jeden Morgen am Fluss.\n"
    (tmp_path / "pairs.tsv").write_text(pair * 8, encoding="utf-8")
    settings = {
        "data": {"train": {"pairs": str(tmp_path / "pairs.tsv")}, "valid": {"pairs": str(tmp_path / "pairs.tsv")}},
        "model": {"preset": "tiny", "width": 16},
        "text": {"subword": {"kind": "character"}},
        "train": {"max_steps": 1, "device": "cpu", "threads": 1, "average": {"count": 0}},
        "out": str(tmp_path / "run"),
    }
    folder = dragoman.train(settings, quiet=True).folder
    text = (folder / "README.md").read_text(encoding="utf-8")
    card = metadata(text)
    assert card.language == ["en", "de"] and str(tmp_path) not in text
    assert {each.metric_type for each in card.eval_results} == {"bleu", "chrf", "perplexity"}
