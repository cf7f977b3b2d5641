"""What a tagger is by default: an LSTM over factors of words, with a CRF for spans, unless settings or the data say
otherwise.
"""

from pathlib import Path
from typing import Any

import pytest

from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.tasks.labelled.config import TaggingRun
from dragoman.tasks.labelled.jobs import TaggingJob

SPANS, WORDS = "Anna B-PER\nSmith I-PER\nsees O\nRome B-LOC\n\n", "Anna NOUN\nsees VERB\nRome NOUN\n\n"


def prepared(folder: Path, text: str, **settings: Any) -> TaggingRun:
    path = folder / "train.conll"
    path.write_text("".join(f"{text.strip()}\nnumber{number} {text.split()[1]}\n\n" for number in range(60)))
    data = {"train": str(path), "valid": str(path)}
    content = {"task": {"kind": "tagging"}, "data": data, "out": str(folder / "run"), **settings}
    job = TaggingJob(TaggingRun.model_validate(content))
    job.prepare()
    return job.run


@pytest.mark.parametrize(
    ("text", "settings", "encoder", "transitions"),
    [
        (SPANS, {}, "recurrent", "learned"),
        (WORDS, {}, "recurrent", "none"),
        (SPANS, {"train": {"objective": {"label_smoothing": 0.1}}}, "recurrent", "none"),
        (SPANS, {"model": {"head": {"kind": "tagging", "transitions": "valid"}}}, "recurrent", "valid"),
        (SPANS, {"model": {"head": {"kind": "tagging", "transitions": "none"}}}, "recurrent", "none"),
        (SPANS, {"model": {"preset": "tiny"}}, "transformer", "learned"),
        (SPANS, {"model": {"encoder": {"kind": "transformer"}}}, "transformer", "learned"),
    ],
)
def test_defaults(tmp_path: Path, text: str, settings: dict[str, Any], encoder: str, transitions: str) -> None:
    run = prepared(tmp_path, text, **{"model": {}, **settings})
    assert run.model.encoder.kind == encoder
    assert run.model.head.transitions == transitions  # type: ignore[union-attr]
    resumed = TaggingRun.model_validate({**run.model_dump(), "model": settings.get("model", {})})
    assert resumed.with_stored_choices(run).model == run.model


def test_many_sentences_and_other_tasks_have_a_transformer() -> None:
    tagger = EncoderOnlyConfig.model_validate({"head": {"kind": "tagging"}})
    few = tagger.resolve(20_000)
    assert few.preset == "words" and few.head.context is not None  # type: ignore[union-attr]
    assert tagger.resolve(20_001).preset == "tiny"
    for settings in ({"factors": None}, {"head": {"kind": "tagging", "context": None}}):
        chosen = EncoderOnlyConfig.model_validate({"head": {"kind": "tagging"}, **settings}).resolve(100)
        assert chosen.preset == "words" and chosen.head.context is None  # type: ignore[union-attr]
    assert EncoderOnlyConfig.model_validate({"head": {"kind": "classification"}}).resolve(100).preset == "tiny"
