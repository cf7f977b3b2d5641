"""Masking of tokens: shares, special symbols, whole words in every kind of vocabulary, reproducible draws."""

from functools import cache
from math import sqrt

import numpy as np
import pytest
import regex
import torch
from pydantic import ValidationError
from small_vocabularies import KINDS, small_tokenizer

from dragoman.data.batches.batch import document_blocks
from dragoman.data.batches.epoch import Part
from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.masked import SPECIAL, MaskedBatch, MaskedCollator, fill_rows, plan_packed
from dragoman.data.batches.masking import MASK, Masker, MaskingConfig
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizer import Tokenizer

LINES = [
    "A dog runs over the green grass .",
    "Zwei Hunde (aus Köln) schlafen; 12 Katzen auch!",
    "犬が草の上を走る。",
] * 3


@cache
def tokenizer(kind: str) -> Tokenizer:
    return small_tokenizer(kind, LINES, ["bt", MASK])


def collate(
    texts: list[list[int]], epoch: int = 0, length: int | None = None, seed: int = 1, **settings: object
) -> MaskedBatch:
    masker = Masker(MaskingConfig.model_validate(settings), tokenizer("bpe"), seed)
    rows = [document_blocks(ids, 1000)[0] for ids in texts]
    return MaskedCollator(masker, epoch, length)(rows, list(range(len(rows))))


def within_three_sigma(count: int, places: int, share: float) -> bool:
    return abs(count - places * share) <= 3 * sqrt(places * share * (1 - share))


def test_shares_are_those_of_the_settings_on_a_million_places_and_special_symbols_are_never_masked() -> None:
    vocabulary = tokenizer("bpe")
    (mask,) = vocabulary.tag_ids([MASK])
    draw = np.random.default_rng(3)
    ids = draw.integers(0, vocabulary.size, 1_100_000)
    masked = Masker(MaskingConfig(), vocabulary, 1).mask(ids, 0, 0)
    text = (ids > UNK) & (ids < vocabulary.size - len(vocabulary.tags))
    assert not masked.predicted[~text].any()
    assert (masked.ids[~masked.predicted] == ids[~masked.predicted]).all()
    places, predicted = int(text.sum()), int(masked.predicted.sum())
    assert places > 1_000_000 and within_three_sigma(predicted, places, 0.15)
    before, after = ids[masked.predicted], masked.ids[masked.predicted]
    assert within_three_sigma(int((after == mask).sum()), predicted, 0.8)
    pieces = vocabulary.size - len(vocabulary.tags) - 4
    same = 0.1 + 0.1 / pieces  # a random token may be the same by chance
    assert within_three_sigma(int((after == before).sum()), predicted, same)
    assert after.min() > UNK and set(after[after >= vocabulary.size - len(vocabulary.tags)]) == {mask}


@pytest.mark.parametrize("kind", KINDS)
def test_whole_words_are_masked_together_in_every_kind_of_vocabulary(kind: str) -> None:
    vocabulary = tokenizer(kind)
    masker = Masker(MaskingConfig(rate=0.3, whole_words=True), vocabulary, 1)
    seen = 0
    for line in LINES[:2]:
        ids, spans = np.array(vocabulary.encode(line)), vocabulary.spans(line)
        words = [match.span() for match in regex.finditer("[A-Za-zäöü]+", line)]
        for epoch in range(30):
            predicted = masker.mask(ids, epoch, 0).predicted
            for first, last in words:
                inside = [first <= start < end <= last for start, end in spans] & (ids > UNK)
                assert len(set(predicted[inside])) <= 1, (line[first:last], predicted[inside])
                seen += inside.sum() > 1 and bool(predicted[inside].any())
    assert seen or kind == "word"  # a word is a single token


def test_masks_depend_on_seed_epoch_and_row_and_on_nothing_else() -> None:
    texts = [tokenizer("bpe").encode(line * 5) for line in LINES]
    first, second = collate(texts), collate(texts)
    assert torch.equal(first.inputs, second.inputs) and torch.equal(first.labels, second.labels)
    assert not torch.equal(first.labels, collate(texts, epoch=1).labels)
    assert not torch.equal(first.labels, collate(texts, seed=2).labels)
    masker = Masker(MaskingConfig(), tokenizer("bpe"), 1)
    alone = MaskedCollator(masker)([document_blocks(texts[2], 1000)[0]], [2])
    assert torch.equal(alone.inputs[0], first.inputs[2, : alone.inputs.size(1)])


def test_padding_and_special_symbols_have_no_labels_and_labels_are_the_original_tokens() -> None:
    texts = [tokenizer("bpe").encode(line) for line in LINES] + [[]]
    batch = collate(texts, rate=0.5)
    for row, text in enumerate(texts):
        whole = [BOS, *text, EOS]
        inputs, labels = batch.inputs[row].tolist(), batch.labels[row].tolist()
        assert inputs[len(whole) :] == [PAD] * (len(inputs) - len(whole))
        assert labels[0] == NO_LABEL and set(labels[len(whole) - 1 :]) == {NO_LABEL}
        for place, number in enumerate(whole):
            assert labels[place] in (NO_LABEL, number)
            assert labels[place] != NO_LABEL or inputs[place] == number
    assert batch.target_tokens == int((batch.labels != NO_LABEL).sum()) > 20
    parts = batch.split(3)
    assert sum(part.target_tokens for part in parts) == batch.target_tokens
    assert sum(len(part.rows) for part in parts) == len(texts)


def test_a_batch_of_short_texts_has_something_to_predict() -> None:
    word = tokenizer("bpe").encode("A")[:1]
    assert all(collate([word], epoch=epoch, rate=0.01).target_tokens == 1 for epoch in range(5))
    assert collate([[]]).target_tokens == 0


def test_rows_are_filled_in_order() -> None:
    assert list(fill_rows([3, 4, 5, 1, 20, 2], 8)) == [[0, 1], [2, 3], [4], [5]]
    texts = [tokenizer("bpe").encode(line) for line in LINES]
    batch = collate(texts, length=64)
    assert batch.packed and batch.inputs.size(1) <= 64 and len(batch.rows) < len(texts)
    assert int((batch.inputs == BOS).sum()) == len(texts)


def test_a_packed_epoch_reads_each_block_once_in_a_new_order() -> None:
    lengths = np.random.default_rng(1).integers(1, 30, (500, 1)).astype(np.int32)
    plans = [plan_packed(lengths, 256, 64, seed=1, epoch=epoch, parts=[Part(500, 1.0)]) for epoch in (0, 0, 1)]
    orders = [np.concatenate(list(plan.batches)).tolist() for plan in plans]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == list(range(500))
    for batch in plans[0].batches:
        rows = list(fill_rows((lengths[batch, 0] + SPECIAL).tolist(), 64))
        assert len(rows) <= 4
    assert plans[0].padding_waste[0] < 0.3


def test_shares_that_exceed_the_whole_are_rejected() -> None:
    with pytest.raises(ValidationError, match=r"masking\.replaced and masking\.random .* sum is 1\.1"):
        MaskingConfig(replaced=0.9, random=0.2)
