"""The designs: one factor at a time around four centres, all pairs, the full product, a dozen for Multi30k."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from covering import cover, pairs_of
from factors import IN_PAIRS, NEEDED, SAME, Levels, build, factors, meant

CENTRES: dict[str, Levels] = {
    family: {} if family == "transformer" else {"encoder": family, "decoder": family}
    for family in ("transformer", "recurrent", "convolutional", "bytenet")
}
AGAIN = {"recurrent": ("scorer", "teacher_forcing")}
"""Factors varied around a centre although they are varied around an earlier one too."""
ANNEALED = {"cross_attention": "cross_attention", "recurrent.attention": "attention"}
"""Factors whose level `hard` is also run with annealed soft attention, and their fields of the decoder."""
SOFT_UPDATES = 1360
"""Annealing of hard attention: four fifths of the updates in the budget of the embedded corpus."""
LESS_NOISE = {"baseline": "soft", "soft_updates": SOFT_UPDATES, "entropy_weight": 0.01}
"""Settings of an additional run for REINFORCE, whose gradient estimate is noisy with the default settings."""
DOZEN: tuple[Levels, ...] = (
    {},
    {"positions": "rotary"},
    {"positions": "alibi"},
    {"positions": "relative"},
    {"scorer": "additive"},
    {"normalisation": "rms", "activation": "swiglu"},
    {"experts": "set"},
    {"encoder": "recurrent", "decoder": "recurrent"},
    {"encoder": "recurrent", "decoder": "recurrent", "recurrent.wiring": "luong"},
    {"decoder": "recurrent"},
    {"encoder": "convolutional", "decoder": "convolutional"},
    {"encoder": "mean"},
)


@dataclass(frozen=True)
class Plan:
    """A planned run.

    group: its design and centre; varied: a description of the variation; levels: the requested levels; effective: the
    level of every factor in its settings.
    """

    group: str
    factor: str
    varied: str
    levels: Levels
    effective: Levels
    settings: dict[str, Any]


def plan(group: str, factor: str, varied: str, levels: Levels) -> Plan:
    """Return a run with these levels."""
    settings, effective = build(levels)
    return Plan(group, factor, varied, levels, effective, settings)


def text(levels: Levels) -> str:
    """Format levels as one line of text."""
    return ", ".join(f"{factor}={level}" for factor, level in levels.items())


def singles(only: set[str]) -> list[Plan]:
    """Return the centres, each pair of encoder and decoder families, then each factor in turn; `only` these factors."""
    plans = list(_singles())
    groups = {each.group for each in plans if each.factor in only}
    return [
        each
        for each in plans
        if not only or each.factor in only or (each.factor == "centre" and (each.group in groups or not groups))
    ]


def _singles() -> Iterator[Plan]:
    known = factors()
    varied: set[str] = {"encoder", "decoder"}
    for centre, base in CENTRES.items():
        group = f"around the {centre}"
        yield plan(group, "centre", centre, base)
        if centre == "transformer":
            for encoder, decoder in product(known["encoder"], known["decoder"]):
                if encoder != decoder or encoder not in CENTRES:
                    yield plan(group, "family", f"{encoder} → {decoder}", {"encoder": encoder, "decoder": decoder})
        for factor, levels in known.items():
            start = {**base, **NEEDED.get(factor, {})}
            usual = build(start)[1].get(factor)
            if usual is None or (factor in varied and factor not in AGAIN.get(centre, ())):
                continue
            varied.add(factor)
            for level in levels:
                made = plan(group, factor, level, {**start, factor: level})
                if level not in (usual, SAME.get(factor)) and made.effective.get(factor) == level:
                    yield made
                    if factor in ANNEALED and level == "hard":
                        yield _with(made, ANNEALED[factor], "annealed", {"soft_updates": SOFT_UPDATES})
                    if factor == "gradient" and level == "reinforce":
                        yield _with(made, "cross_attention", "soft baseline and start", LESS_NOISE)


def _with(made: Plan, field: str, name: str, changes: dict[str, Any]) -> Plan:
    """Return the same run with additional settings of the decoder's attention over the source."""
    settings = copy.deepcopy(made.settings)
    settings["model"]["decoder"][field].update(changes)
    return replace(made, varied=f"{made.varied}, {name}", settings=settings)


def paired(only: set[str]) -> dict[str, list[str]]:
    """Return the levels whose pairs are covered; the meaning of null is included by its own name."""
    return {
        factor: [
            level
            for level in levels
            if not (factor in SAME and level == "null") and level in IN_PAIRS.get(factor, levels)
        ]
        for factor, levels in factors().items()
        if not only or factor in only
    }


def pairs(only: set[str], made: Iterable[Levels]) -> tuple[list[Plan], dict[str, str]]:
    """Return runs that contain all pairs of levels of two factors, and the refused pairs with the reasons.

    made: the effective levels of other runs, whose pairs are covered. The singles contain each level with the centre's
    levels of all other factors, so the remaining pairs are of two levels that differ from the centre's. Runs on
    characters come last: they read about five times as many tokens and take half of the total time.
    """
    known = paired(only)
    design = cover(known, held=set().union(*(pairs_of(meant(levels), known) for levels in made)))
    plans = []
    for levels in sorted(design.runs, key=lambda levels: levels.get("subword") == "character"):
        effective = build(levels)[1]
        shown = {factor: level for factor, level in effective.items() if levels.get(factor) == level}
        plans.append(plan("pairs", "", text(shown), levels))
    refused = {" with ".join(sorted(map("=".join, pair))): why for pair, why in design.refused.items()}
    return plans, refused


def full(only: set[str]) -> Iterator[Plan]:
    """Return every combination of all levels."""
    known = {factor: levels for factor, levels in factors().items() if not only or factor in only}
    for combination in product(*known.values()):
        levels = dict(zip(known, combination, strict=True))
        made = plan("full product", "", text(levels), levels)
        if all(made.effective.get(factor) == level for factor, level in levels.items()):
            yield made


def dozen() -> list[Plan]:
    """Return a selection of twelve runs, compared with the Transformer's centre."""
    return [plan("Multi30k", "" if levels else "centre", text(levels) or "transformer", levels) for levels in DOZEN]
