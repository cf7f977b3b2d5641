"""Vocabularies of every kind can be sent to a worker process, including their tags."""

import pickle
from typing import Any

import pytest

from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.vocabularies.union import Kinds

LEARNED = [kind for config in Kinds.__args__ if (kind := config.model_fields["kind"].default) != "t5"]
"""The kinds of vocabularies that are learned. Those of imported T5 models are not."""

TEXTS = ["A dog runs in the park.", "Two dogs sleep, one cat runs.", "Grüße aus dem Park 😀"] * 3


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize("shared", [True, False])
def test_the_received_tokenizer_equals_the_sent_one(kind: str, shared: bool) -> None:
    settings: dict[str, Any] = {"subword": {"kind": kind}, "shared": shared, "tags": ["bt", "to:de"]}
    sent = train_tokenizers(TextConfig.model_validate(settings), TEXTS, TEXTS[1:])
    arrived = pickle.loads(pickle.dumps(sent))
    assert isinstance(arrived, Tokenizers)
    assert arrived.fingerprint == sent.fingerprint
    assert arrived.shared == sent.shared == shared
    assert arrived.source.tag_ids(["bt"]) == sent.source.tag_ids(["bt"])
    for side in ("source", "target"):
        assert getattr(arrived, side).encode_batch(TEXTS) == getattr(sent, side).encode_batch(TEXTS)
