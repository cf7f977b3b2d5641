"""Noise of denoising: shares, lengths of spans, targets that restore the text, special symbols, reproducible draws."""

import json
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from small_vocabularies import KINDS, small_tokenizer

from dragoman.data.batches.batch import Batch, document_blocks
from dragoman.data.batches.denoising import DenoisingCollator
from dragoman.data.batches.masking import MASK
from dragoman.data.noise.noise import BaseNoiseConfig, Corruption, NoisyText
from dragoman.data.noise.sentences import SentencePermutation
from dragoman.data.noise.spans import SENTINEL, place_spans
from dragoman.data.noise.union import NoiseConfig
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizer import Tokenizer

LINES = [
    "A dog runs over the green grass. It barks!",
    "Zwei Hunde (aus Köln) schlafen; 12 Katzen auch!",
    "犬が草の上を走る。 猫も走る。",
] * 3
LENGTH = 12_000
NOISES: dict[str, dict[str, Any]] = {
    "span_corruption": {"kind": "span_corruption"},
    "infilling": {"kind": "infilling"},
    "token_masking": {"kind": "token_masking"},
    "token_deletion": {"kind": "token_deletion"},
    "sentence_permutation": {"kind": "sentence_permutation"},
    "bart": {"kind": "combination", "noises": [{"kind": "sentence_permutation"}, {"kind": "infilling"}]},
    "permuted_spans": {
        "kind": "combination",
        "noises": [{"kind": "sentence_permutation"}, {"kind": "span_corruption"}],
    },
}


def config(**settings: Any) -> BaseNoiseConfig:
    noise: BaseNoiseConfig = TypeAdapter(NoiseConfig).validate_python(settings)
    return noise


@cache
def tokenizer(kind: str, sentinels: int = 800) -> Tokenizer:
    return small_tokenizer(kind, LINES, ["bt", MASK, *(f"{SENTINEL}{number}" for number in range(sentinels))])


@cache
def corruption(settings: str, vocabulary: Tokenizer) -> Corruption:
    return Corruption(config(**json.loads(settings)), vocabulary, 1)


def corrupt(ids: NDArray[np.int64], *key: int, vocabulary: Tokenizer | None = None, **settings: Any) -> NoisyText:
    return corruption(json.dumps(settings), vocabulary or tokenizer("bpe")).corrupt(ids, *(key or (0, 0)))


def text(length: int, seed: int = 3) -> NDArray[np.int64]:
    vocabulary = tokenizer("bpe")
    return np.random.default_rng(seed).integers(4, vocabulary.size - len(vocabulary.tags), length)


def merge(noisy: NoisyText, sentinels: range) -> list[int]:
    """Return the text that a source and a target of span corruption represent."""
    spans: dict[int, list[int]] = {}
    for number in noisy.target.tolist():
        if number in sentinels:
            current = spans.setdefault(number, [])
        else:
            current.append(number)
    return [token for number in noisy.source.tolist() for token in spans.get(number, [number])]


def sentinel_ids(vocabulary: Tokenizer) -> range:
    return range(vocabulary.tag_ids([f"{SENTINEL}0"])[0], vocabulary.size)


def mask_id(vocabulary: Tokenizer) -> int:
    return vocabulary.tag_ids([MASK])[0]


def within_three_sigma(count: float, expected: float, variance: float) -> bool:
    return abs(count - expected) <= 3 * sqrt(variance) + 1e-9


def test_spans_have_the_share_and_the_mean_length_of_the_settings() -> None:
    ids = text(LENGTH)
    noisy = corrupt(ids, kind="span_corruption")
    sentinels = sentinel_ids(tokenizer("bpe"))
    spans = int(np.isin(noisy.source, sentinels).sum())
    tokens = LENGTH - (len(noisy.source) - spans)
    assert abs(tokens - 0.15 * LENGTH) < 1 and abs(spans - tokens / 3) < 1
    assert len(noisy.target) == tokens + spans + 1
    # 11 tokens have 1 or 2 in spans (mean 1.65), in one or two spans
    hidden = [11 - len(corrupt(ids[:11], epoch, 0, kind="span_corruption", mean_span=1).source) for epoch in range(9)]
    assert set(hidden) == {0}  # each span of one token is replaced by one sentinel
    targets = [corrupt(ids[:11], epoch, 0, kind="span_corruption").target for epoch in range(500)]
    lengths = [int((~np.isin(target, sentinels)).sum()) for target in targets]
    assert set(lengths) == {1, 2}
    assert within_three_sigma(lengths.count(2), 0.65 * 500, 500 * 0.65 * 0.35)


def test_every_token_is_equally_likely_to_be_in_a_span_except_near_the_ends() -> None:
    draw = np.random.default_rng(1)
    hits = np.sum([place_spans(np.array([2, 3]), 12, draw) for _ in range(5_000)], 0)
    # All 8 choose 2 = 28 placements of two spans with a gap are equally likely.
    placements = np.zeros(12)
    for first in range(8):
        for second in range(first + 3, 10):
            placements[first : first + 2] += 1 / 28
            placements[second : second + 3] += 1 / 28
    assert placements.sum() == pytest.approx(5)
    for count, share in zip(hits, placements, strict=True):
        assert within_three_sigma(count, 5_000 * share, 5_000 * share * (1 - share))


def test_infilling_has_poisson_lengths_and_inserts_a_mask_for_each_empty_span() -> None:
    ids = text(LENGTH)
    noisy = corrupt(ids, kind="infilling")
    masks = int((noisy.source == mask_id(tokenizer("bpe"))).sum())
    hidden = LENGTH - (len(noisy.source) - masks)
    assert abs(hidden - 0.3 * LENGTH) < 1 and (noisy.target == ids).all()
    spans = 0.3 * LENGTH / 3  # of mean 3, including empty ones
    assert within_three_sigma(masks, spans, spans / 3)  # the variance of the number of draws that reach a sum
    seen = [len(corrupt(ids[:9], epoch, 0, kind="infilling").source) for epoch in range(300)]
    assert max(seen) <= 9 and min(seen) >= 7


@pytest.mark.parametrize("kind", ["token_masking", "token_deletion"])
def test_single_tokens_are_masked_or_deleted_at_the_rate(kind: str) -> None:
    ids = text(LENGTH)
    noisy = corrupt(ids, kind=kind)
    masked = int((noisy.source == mask_id(tokenizer("bpe"))).sum()) + LENGTH - len(noisy.source)
    assert within_three_sigma(masked, 0.15 * LENGTH, LENGTH * 0.15 * 0.85)
    assert (noisy.target == ids).all() and (kind == "token_masking") == (len(noisy.source) == LENGTH)


@given(
    ids=st.lists(st.integers(0, tokenizer("bpe").size - 1).filter(lambda each: each != EOS), max_size=60),
    seed=st.integers(0, 1000),
    rate=st.sampled_from([0.1, 0.15, 0.5, 0.9]),
    mean_span=st.sampled_from([1.0, 3.0, 10.0]),
)
def test_the_source_and_the_target_of_span_corruption_merge_to_the_text(
    ids: list[int], seed: int, rate: float, mean_span: float
) -> None:
    vocabulary = tokenizer("bpe")
    sentinels = sentinel_ids(vocabulary)
    whole = np.array([each for each in ids if each not in sentinels], np.int64)
    noisy = corrupt(whole, seed, kind="span_corruption", rate=rate, mean_span=mean_span)
    assert merge(noisy, sentinels) == whole.tolist()
    used = noisy.source[np.isin(noisy.source, sentinels)].tolist()
    assert [*used, sentinels.start + len(used)] == list(sentinels[: len(used) + 1])
    assert noisy.target[np.isin(noisy.target, sentinels)].tolist() == list(sentinels[: len(used) + 1])
    assert used or not whole.size or not ((whole > UNK) & (whole < mask_id(vocabulary) - 1)).all()


@pytest.mark.parametrize("noise", NOISES)
def test_special_symbols_and_tags_are_never_lost_and_the_tags_of_the_noise_suffice(noise: str) -> None:
    settings = NOISES[noise]
    draw = np.random.default_rng(5)
    tags = ("bt", *config(**settings).tags(128))
    vocabulary = tokenizer("bpe", 0).with_tags(tags)
    bt = vocabulary.tag_ids(["bt"])[0]
    for row in range(200):
        ids = draw.choice([UNK, bt, *range(4, 40)], int(draw.integers(0, 129)))
        noisy = corrupt(ids, row, vocabulary=vocabulary, **settings)
        for special in (UNK, bt):
            assert (noisy.source == special).sum() == (ids == special).sum()
        assert noisy.source.size <= ids.size
        assert all(0 <= number < vocabulary.size for number in (*noisy.source.tolist(), *noisy.target.tolist()))
        if "span" not in noise:
            assert (noisy.target == ids).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_divided_after_their_ends_in_every_kind_of_vocabulary(kind: str) -> None:
    vocabulary = tokenizer(kind)
    noise = SentencePermutation(vocabulary)
    for line, count in ((LINES[0], 2), (LINES[1], 1), (LINES[2], 2), ("(no. e.g.5) ok.", 2), ("a\nb", 2)):
        ids = np.array(vocabulary.encode(line))
        ends = noise.sentence_ends(ids)
        expected = 1 if kind == "word" and line.startswith(("(", "a\n")) else count
        assert len(ends) == expected or UNK in ids, (kind, line)
        assert ends[-1] == len(ids)
    ids = np.array(vocabulary.encode(LINES[0]))
    first = noise.sentence_ends(ids)[0]
    assert vocabulary.decode(ids[:first]).strip() == "A dog runs over the green grass."
    orders = {tuple(corrupt(ids, row, vocabulary=vocabulary, kind="sentence_permutation").source) for row in range(20)}
    assert orders == {tuple(ids), (*ids[first:], *ids[:first])}


def test_all_orders_of_sentences_are_equally_likely() -> None:
    vocabulary = tokenizer("bpe")
    ids = np.array(vocabulary.encode("A a. B b. C c."))
    counts: dict[tuple[int, ...], int] = {}
    for row in range(1200):
        order = tuple(corrupt(ids, row, kind="sentence_permutation").source)
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(within_three_sigma(count, 200, 1200 * 5 / 36) for count in counts.values())


def collate(rows: list[int], epoch: int = 0, seed: int = 1) -> Batch:
    infilling = Corruption(config(kind="infilling"), tokenizer("bpe"), seed)
    texts = [document_blocks(text(20 + row, row).tolist(), 1000)[0] for row in rows]
    return DenoisingCollator(infilling, epoch)(texts, rows)


def test_noise_depends_on_seed_epoch_and_row_and_on_nothing_else() -> None:
    first = collate([0, 1, 2])
    assert [row.tolist() for row in first.source] == [row.tolist() for row in collate([0, 1, 2]).source]
    alone = collate([2])
    assert alone.source[0].tolist() == first.source[2, : alone.source.size(1)].tolist()
    for other in (collate([0, 1, 2], epoch=1), collate([0, 1, 2], seed=2)):
        assert other.source.shape != first.source.shape or (other.source != first.source).any()


def test_a_batch_has_the_corrupted_texts_as_sources_and_the_texts_as_targets() -> None:
    batch = collate([0, 3])
    for row, number in enumerate([0, 3]):
        whole = text(20 + number, number).tolist()
        assert batch.inputs[row].tolist() == [BOS, *whole] + [PAD] * (batch.inputs.size(1) - len(whole) - 1)
        assert batch.labels[row, : len(whole) + 1].tolist() == [*whole, EOS]
        assert batch.source[row][batch.source_mask[row]].tolist()[-1] == EOS


def test_a_noise_whose_hidden_tokens_are_never_predicted_is_rejected() -> None:
    with pytest.raises(ValidationError, match="never predict the tokens that token_deletion hides"):
        config(kind="combination", noises=[{"kind": "token_deletion"}, {"kind": "span_corruption"}])
    with pytest.raises(ValidationError, match="never predict"):
        config(kind="combination", noises=[{"kind": "span_corruption"}] * 2)
