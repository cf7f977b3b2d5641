"""Every variant, and every two in one model, enumerated from the settings; new ones are tested automatically."""

import json
import pickle
from itertools import combinations
from pathlib import Path

import pytest
from made_once import made_once
from setting_choices import levels
from variant_checks import check
from variant_design import Design, Run, design
from variant_settings import (
    UNVARIED,
    VALUES,
    Level,
    Settings,
    Single,
    factors,
    holding,
    label,
    leaves,
    pairs,
    refusal,
    registry,
    repeated,
    singles,
)

from dragoman.models.kinds.encoder_decoder import ModelConfig

FIRST, SHARDS, ALL_SHARDS = 48, 6, 24
"""The FIRST models, which contain most pairs, are divided among SHARDS tests; all, among ALL_SHARDS slow ones."""
IMPOSSIBLE = {("target_positions",): "fraction"}
"""Levels that no model can have, including choices inside them: a decoder does not know the length of its text."""
REASONS = (
    "need the length of the whole text, which is unknown in a decoder",
    "act inside self-attention, which a",
    "act inside self-attention, but a decoder with attention of kind",
    "kv_heads needs projections",
    "change the scores or values of pairs, which linear attention does not compute",
    "relative positions have no effect if keys and values are both false",
    "the decoder is not connected to the source",
    "residual connections begin at layer",
    "experts are between two layers",
    "experts process all tokens of a batch at once",
)
"""Reasons why two variants are incompatible, as parts of messages to users."""


CHECKED: set[tuple[str, int]] = set()
"""The models that were checked in this process, with their seeds. Many levels are defaults, so models recur."""


def passes(settings: Settings, seed: int) -> ModelConfig:
    """Check a model; a failure names the model."""
    config = ModelConfig.model_validate(settings)
    model = config.model_dump_json(), seed
    if model not in CHECKED:
        try:
            check(config, seed)
        except Exception as error:
            error.add_note(f"the model's settings: {json.dumps(settings)}")
            raise
        CHECKED.add(model)
    return config


@pytest.mark.slow
@pytest.mark.parametrize("single", singles(), ids=label)
def test_every_variant_keeps_the_promises(single: Single) -> None:
    """Each in the simplest model that has it, so that a fault is easy to find."""
    check_single(single)


def check_single(single: Single) -> None:
    """Check a model with a level. One that is incompatible with the simplest model must be compatible with another."""
    known = any(IMPOSSIBLE.get(path) == level for path, level in (*single[0].conditions, (single[0].path, single[1])))
    said = []
    for settings in holding(single):
        why = refusal(settings)
        if why is None:
            config = passes(settings, 1)
            assert levels(config, registry())[single[0]] == single[1]
            assert not known, "this is possible by now: take it off the list"
            return
        said.append(why)
    assert known, f"no model can have this: {said[0]}"


def dealt(factory: pytest.TempPathFactory, most: int | None) -> Design:
    """A design, which takes seconds to compute; read from bytes that only these tests wrote."""

    def make(folder: Path) -> None:
        (folder / "design").write_bytes(pickle.dumps(design(most)))

    made: Design = pickle.loads((made_once(factory, f"variants-{most}", make) / "design").read_bytes())
    return made


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Design:
    return dealt(tmp_path_factory, FIRST)


@pytest.fixture(scope="module")
def designed(tmp_path_factory: pytest.TempPathFactory) -> Design:
    return dealt(tmp_path_factory, None)


def keep_the_promises(runs: list[Run]) -> None:
    for number, (settings, held) in enumerate(runs):
        config = passes(settings, number)
        present = levels(config, registry())
        assert held == {(factors()[choice], level) for choice, level in present.items()}, json.dumps(settings)


def held_pairs(made: Design) -> set[frozenset[Level]]:
    return {frozenset(pair) for _, levels in made.runs for pair in combinations(levels, 2)}


def strange(made: Design) -> set[str]:
    """Return refusals for other than the known reasons, so that a new refusal is noticed."""
    return {why for why in made.impossible.values() if not any(reason in why for reason in REASONS)}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_most_two_variants_keep_the_promises(shard: int, beginning: Design) -> None:
    """Few models, each with many pairs, are distributed over shards that can run in parallel."""
    keep_the_promises(beginning.runs[shard::SHARDS])


def test_variants_that_these_models_lack_keep_the_promises(beginning: Design) -> None:
    present = {
        single
        for settings, _ in beginning.runs
        for single in levels(ModelConfig.model_validate(settings), registry()).items()
    }
    missing = [single for single in singles() if single not in present | repeated()]
    assert len(missing) < 0.15 * len(singles())
    for single in missing:
        check_single(single)


def test_few_models_contain_most_pairs(beginning: Design) -> None:
    assert len(held_pairs(beginning)) > 0.65 * len(pairs())
    assert not strange(beginning)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(ALL_SHARDS))
def test_every_two_variants_keep_the_promises(shard: int, designed: Design) -> None:
    keep_the_promises(designed.runs[shard::ALL_SHARDS])


@pytest.mark.slow
def test_the_design_contains_every_pair_that_is_not_refused(designed: Design) -> None:
    """All refusals have one of few reasons."""
    made, held = designed, held_pairs(designed)
    for pair in pairs():
        assert (pair in made.refused) != (frozenset(pair) in held), pair
    assert not strange(made)
    idle = [reason for reason in REASONS if not any(reason in why for why in made.impossible.values())]
    assert not idle
    assert [levels for levels in made.impossible if len(levels) == 1] == [frozenset(IMPOSSIBLE.items())]


def test_no_variant_has_required_settings() -> None:
    """No member of a union has a required setting, which only its own tests could provide."""
    assert not {(".".join(choice.path), kind) for choice in registry() for kind in choice.omitted}


def test_every_setting_is_varied_or_listed() -> None:
    """A new size or rate must be listed with values to try, or with a reason."""
    enumerated = {choice.path[-1] for choice in registry()}
    assert leaves() - {"kind"} == (leaves() & enumerated) | set(VALUES) | set(UNVARIED)
