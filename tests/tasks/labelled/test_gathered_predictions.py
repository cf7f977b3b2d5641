"""Processes that share a validation set exchange predictions of every kind without a change."""

import json
from typing import Any

import pytest
import torch

from dragoman import Predictor
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.tasks.labelled.validator import LabelledValidator
from dragoman.text.tokenizers import TextConfig, VocabularySizes, train_tokenizers

HEADS: list[dict[str, Any]] = [
    {"kind": "classification", "labels": ["a", "b"]},
    {"kind": "regression"},
    {"kind": "tagging", "labels": ["O", "B-X", "I-X"]},
    {"kind": "tagging", "labels": ["O", "B-X", "I-X"], "transitions": "learned"},
    {"kind": "span", "no_answer": True},
]


class TwoRanks:
    """The first of two ranks, as seen by a validator; the other has the same value."""

    size = 2

    def gather(self, value: Any) -> list[Any]:
        return [json.loads(json.dumps(value))] * 2


@pytest.mark.parametrize("head", HEADS, ids=lambda head: "-".join(map(str, head)))
def test_predictions_survive_the_exchange(head: dict[str, Any]) -> None:
    texts = ["Anna sees a dog in the park", "the cat"]
    tokenizer = train_tokenizers(TextConfig.model_validate({"subword": {"kind": "character"}}), texts, texts).source
    torch.manual_seed(1)
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
    config = EncoderOnlyConfig.model_validate({"preset": None, "width": 8, "encoder": stack, "head": head})
    model = config.build_for(VocabularySizes(tokenizer.size, tokenizer.size))
    predictor = Predictor(model, tokenizer, config.head)
    asked = [("who sees?", text) for text in texts] if head["kind"] == "span" else texts
    encoded = predictor.encode(asked)
    predictions = list(enumerate(predictor.predict_encoded(encoded)))
    validator = LabelledValidator.__new__(LabelledValidator)
    validator._reader = predictor._head_reader()
    assert validator._gather(predictions, TwoRanks()) == predictions * 2  # type: ignore[arg-type]
