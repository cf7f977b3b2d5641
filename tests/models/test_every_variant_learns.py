"""Every model variant, enumerated from the settings, learns a toy task; new variants are included automatically."""

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch
from toys import fit
from variant_settings import Case, Settings, cases

from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig

SYMBOLS = range(4, 10)
ROWS, WARMUP = 64, 15
STEPS = {75: 1.3e-2, 180: 8e-3, 400: 8e-3}
"""Updates, and the peak rate. Most models learn within the first number; the others restart with the next."""
RIGHT, ENOUGH = 0.85, 0.94
"""Fractions of correct tokens: the required one, and one of a few words at which the training ends."""
ORDERLESS = {
    ("encoder", "mean"): "every position of the memory is the same",
    ("encoder", "sum"): "every position of the memory is the same",
    ("positions", "none"): "an encoder without positions reads a set",
    ("positions", "alibi"): "an encoder knows distances, which are the same on both sides, but no positions",
}
"""Models that do not know the order of the source learn to sort instead of to copy; they copy less than `RIGHT`."""
SLOW = {
    *(("positions", kind) for kind in ("bucketed", "fraction", "index", "one_hot")),
    *(("positions", kind) for kind in ("alibi", "learned", "relative", "rotary")),
    *(("bahdanau|luong|tutorial|gnmt", kind) for kind in ("gnmt", "luong", "tutorial")),
    *(("soft|window|linear", kind) for kind in ("linear", "window")),
    *(("soft|window|linear|average|ssru", "window"), ("adaptive", "true")),
    *(("encoder", kind) for kind in ("sum", "transformer")),
    *(("soft|hard|linear", kind) for kind in ("hard", "linear", "null")),
    *(("context", "first"), ("unfolding", "set")),
}
"""Fields and levels that differ little in training from another level, which is tested always, or that another test
trains (`test_recurrent_toys.py` and `test_long_retrieval.py` in `tests/models/families`), or compares with its formula
(schemes of positions).
"""
DETAILS = {
    *("scorer", "normaliser", "bias", "feedforward_bias", "float32_output", "scale_output", "baseline"),
    *("residual", "connections", "cell", "block", "bidirectional", "input_feeding", "shared"),
    *("embedding_norm", "start_symbol", "norm", "layer|rms|batch"),
    *(
        "projections",
        "combine",
        "tie_keys_and_values",
        "activation",
        "gain",
        "offset",
        "layout",
        "join",
        "keys",
        "values",
    ),
    *("tie_embeddings", "tie_projection", "projection_bias", "scale_embeddings", "bridge", "stacked"),
}
"""Fields that change a module or its connections, but not the way in which symbols reach the output. Every run of the
tests compares the gradient of each level with central differences (`tests/models/test_variants.py`), so only the slow
tests train them.
"""
HARDER = {
    ("encoder.connections", "residual"),
    ("encoder.connections", "fast_forward"),
    ("positions", "relative"),
    ("positions", "bucketed"),
    ("positions", "fraction"),
    ("positions.shared", "false"),
    ("decoder.scale_output", "true"),
    ("decoder.bahdanau|luong|tutorial|gnmt", "tutorial"),
    ("decoder.soft|hard|linear", "null"),
}
"""Models that do not learn within the first number of updates, so that the second is tried at once."""
PATIENT = {"reinforce": {220: 8e-3, 600: 8e-3}}
"""Updates and peak rates for models that learn by trial and error."""


def learning() -> Iterator[Any]:
    """Yield all cases. Scorers, norms and the like, whose module is tested in another part of the model as well, are
    left to the slow tests there, as are the levels in `SLOW` and the fields in `DETAILS`. Kinds of attention are not,
    because they differ from part to part.
    """
    seen = set()
    for case in sorted(cases(), key=lambda case: case[0].startswith(("decoder", "target_"))):
        field = case[0].removeprefix("target_").rpartition(".")[2]
        marks = [pytest.mark.slow] if (field, case[1]) in seen | SLOW or field in DETAILS else []
        yield pytest.param(case, id="-".join(case), marks=marks)
        seen.add((field, case[1]))


@cache
def words(count: int, seed: int) -> list[list[int]]:
    draw = random.Random(seed)
    return [draw.choices(SYMBOLS, k=draw.randint(2, 4)) for _ in range(count)]


@cache
def training_batch(step: int, sort: bool) -> Batch:
    """Return the batch of an update, which is the same for all models."""
    return batch_of(
        words(max(max(steps) for steps in (STEPS, *PATIENT.values())) * ROWS, 1)[step * ROWS :][:ROWS], sort
    )


def batch_of(sources: list[list[int]], sort: bool) -> Batch:
    return collate(sources, [sorted(source) if sort else source for source in sources], range(len(sources)))


def fraction_right(settings: Settings, steps: int, peak: float, sort: bool) -> float:
    """Return the fraction of correct tokens of held-out words, under teacher forcing, after `steps` updates.

    The training ends earlier if other held-out words show that the model has learned the task.
    """
    torch.manual_seed(1)
    model = ModelConfig.model_validate(settings).build(SYMBOLS.stop, SYMBOLS.stop)

    def right(held_out: Batch) -> float:
        model.eval()
        with torch.no_grad():
            found = model(held_out.source, held_out.source_mask, held_out.inputs).logits().argmax(-1)
        model.train()
        return float((found == held_out.labels)[held_out.target_mask].float().mean())

    few = batch_of(words(60, 98), sort)
    batches = (training_batch(step, sort) for step in range(steps))
    fit(model, batches, steps, peak, WARMUP, done=lambda: right(few) >= ENOUGH)
    return right(batch_of(words(300, 99), sort))


@pytest.mark.parametrize("case", list(learning()))
def test_learns(case: Case) -> None:
    settings = cases()[case]
    whole = str(ModelConfig.model_validate(settings).model_dump())  # includes implied settings
    steps = next((steps for gradient, steps in PATIENT.items() if f"'gradient': '{gradient}'" in whole), STEPS)
    for few_or_many, peak in list(steps.items())[case in HARDER :]:
        right = fraction_right(settings, few_or_many, peak, sort=case in ORDERLESS)
        if right >= RIGHT:
            break
    assert right >= RIGHT, f"{right:.1%} of the tokens right: {settings}"


@pytest.mark.slow
@pytest.mark.parametrize("case", ORDERLESS, ids="-".join)
def test_models_without_order_cannot_copy(case: Case) -> None:
    """Otherwise these settings would not belong in the list of exceptions."""
    right = fraction_right(
        cases()[case], 180, STEPS[180], sort=False
    )  # with more updates, distances suffice for many words
    assert right < RIGHT, f"{right:.1%} of the tokens right"
