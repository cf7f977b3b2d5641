"""Factors and their levels, derived from the settings, and the settings for given levels."""

from math import prod
from typing import Any

from setting_choices import Choice, assemble, choices

from dragoman.base.errors import DragomanError
from dragoman.base.settings.config import kinds, union_members
from dragoman.base.settings.load import parse_settings
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.tasks.translation.config import TranslationRun

WIDTH, LAYERS, HEADS, FEEDFORWARD = 96, 2, 4, 192
"""Sizes of each side, if its family has such a setting."""
USUAL = {"norm": "pre"}
"""Levels of the centre that differ from the defaults: post-norm, as in the paper, needs more steps than this."""
FACTORS = (
    "encoder",
    "decoder",
    "attention",
    "cross_attention",
    "gradient",
    "scorer",
    "normaliser",
    "projections",
    "combine",
    "tie_keys_and_values",
    "positions",
    "positions.join",
    "norm",
    "normalisation",
    "activation",
    "experts",
    "residual",
    "tie_embeddings",
    "tie_projection",
    "subword",
    "teacher_forcing",
)
"""In addition, every choice inside a family other than the Transformer is a factor: `recurrent.cell`, …"""
NEEDED = {
    "gradient": {"cross_attention": "hard"},
    "positions.join": {"positions": "sinusoidal"},
    "recurrent.input_feeding": {"recurrent.wiring": "luong"},
    "bytenet.stacked": {"bytenet.cross_attention": "soft"},
}
"""Additional settings for factors that the centres lack, or lack some levels of."""
SAME = {"positions": "sinusoidal", "combine": "project"}
"""The meaning of null at the Transformer's centre."""
LEVEL_COSTS: dict[str, dict[str, float]] = {
    "subword": {"character": 2.7},
    "teacher_forcing": {"linear": 2.7, "exponential": 2.7, "inverse_sigmoid": 2.7},
    "encoder": {"recurrent": 1.3},
    "decoder": {"recurrent": 1.7},
    "scorer": {"additive": 1.4, "dot": 2.0, "general": 2.0},
    "experts": {"set": 1.4},
    "residual": {"false": 4.0},
    "projections": {"false": 2.0},
    "gradient": {"reinforce": 4.0},
    "recurrent.attention": {"null": 4.0},
}
"""The cost of a level, by which its new pairs are divided. Up to experts, and for additive scores, it is the duration
of a run relative to the centre. The other levels have a low BLEU (0 to 30 around the centres) in all combinations, so a
design with many of them would reveal little about the others.
"""
IN_PAIRS = {
    "gradient": ("straight_through",),
    "teacher_forcing": ("constant", "linear"),
    "subword": ("bpe", "unigram", "word"),
    "encoder": ("transformer", "recurrent", "convolutional", "bytenet", "mean"),
    "positions": ("sinusoidal", "learned", "relative", "rotary", "alibi", "none"),
    "activation": ("relu", "swiglu"),
    "recurrent.cell": ("gru", "lstm"),
    "recurrent.bridge": ("initial", "concatenate", "none"),
    "recurrent.bidirectional": ("true", "false"),
    "recurrent.wiring": ("bahdanau", "luong", "tutorial"),
    "recurrent.connections": ("plain",),
    "bytenet.block": ("relu",),
    "bytenet.unfolding": ("null",),
}
"""The levels that represent a factor in pairs, if not all do. Omitted levels are another pace of a schedule, read five
times as many tokens, exist for a lecture's argument, or resemble another level; the singles include all of them.
"""
Levels = dict[str, str]
"""Levels by factor; other factors have their defaults."""


def cost(levels: Levels) -> float:
    """Return the product of the costs of all levels."""
    return prod(LEVEL_COSTS.get(factor, {}).get(level, 1.0) for factor, level in levels.items())


def name(choice: Choice) -> str | None:
    """Return the factor of a choice, the same for both sides; None if it is not a factor here."""
    if choice.path[:2] in (("text", "subword"), ("train", "teacher_forcing")):
        return choice.path[1] if len(choice.path) == 2 else None
    if choice.path[0] != "model" or choice.path[1] == "target_positions":
        return None
    path = choice.path[1:]
    if path[0] not in ("encoder", "decoder") or len(path) == 1:
        factor = ".".join(path)
        return factor if factor in FACTORS else None
    family = dict(choice.conditions).get(choice.path[:2], "transformer")
    if len(path) == 3 and path[1] in ("attention", "cross_attention") and path[2] in FACTORS:
        return path[2]
    if path[1:] == ("wiring", "input_feeding"):
        return f"{family}.input_feeding"
    if family != "transformer":
        return f"{family}.{path[1]}" if len(path) == 2 else None
    return path[1] if len(path) == 2 and path[1] in FACTORS else None


def factors() -> dict[str, list[str]]:
    """Return the levels of each factor."""
    found: dict[str, list[str]] = {}
    for choice in choices(TranslationRun):
        factor = name(choice)
        if factor is not None:
            known = found.setdefault(factor, [])
            known += [level for level in choice.levels if level not in known and not _blind(choice, level)]
    return found


def _blind(choice: Choice, level: str) -> bool:
    """Return whether a decoder with this level has no access to the source, so that no translator can have it."""
    return choice.path[-2:] == ("decoder", "cross_attention") and level == "null" and choice.default != "null"


def build(levels: Levels) -> tuple[dict[str, Any], Levels]:
    """Return settings with the given `levels`, and the resulting levels of all their factors.

    Levels of factors that do not exist with the other levels are ignored. Both sides of a model get the same level of a
    factor that both have.
    """
    effective: Levels = {}
    positions, target_positions = _sides(levels)

    def pick(choice: Choice) -> str | None:
        factor = name(choice)
        if factor is None:
            return target_positions if choice.path == ("model", "target_positions") else None
        level = levels.get(factor, USUAL.get(factor))
        held = level in choice.levels
        # if only one side has the requested level, that side counts
        if held or factor not in effective or effective[factor] != level:
            effective[factor] = level if held and level is not None else choice.default
        if factor == "positions":
            return positions if held else None
        return level if held else None

    settings, _ = assemble(TranslationRun, pick, {"layers": LAYERS, "heads": HEADS, "feedforward": FEEDFORWARD})
    settings.setdefault("model", {}).update(preset=None, width=WIDTH, dropout=0.0)
    return settings, effective


def meant(levels: Levels) -> Levels:
    """Return the levels with null replaced by its meaning at the Transformer's centre."""
    return {factor: SAME[factor] if level == "null" and factor in SAME else level for factor, level in levels.items()}


def refusal(settings: dict[str, Any]) -> str | None:
    """Return the reason why a run with these settings is impossible, or None."""
    corpus = {"source": "none", "target": "none"}
    train = {"max_epochs": 1, **settings.get("train", {})}
    whole = {**settings, "train": train, "data": {"train": corpus, "valid": corpus}, "out": "none"}
    try:
        parse_settings(whole, TranslationRun, "benchmark")
    except DragomanError as error:
        return str(error).removeprefix("benchmark: ")
    return None


def _sides(levels: Levels) -> tuple[str | None, str | None]:
    """Return the position schemes of the source and of the target; None if the setting is omitted.

    A side that does not support the requested scheme, if the other does, gets the most similar one: a decoder does not
    know the length of the target, and only self-attention supports schemes inside attention.
    """
    level = levels.get("positions")
    scheme = _member("positions", level)
    if getattr(scheme, "needs_length", False):
        return level, "sinusoidal"
    reads, writes = (
        getattr(_member(side, levels.get(side, "transformer")), "has_self_attention", True)
        for side in ("encoder", "decoder")
    )
    if not getattr(scheme, "inside_attention", False) or reads == writes:
        return level, None
    return (level, "none") if reads else (None, level)


def _member(field: str, kind: str | None) -> Any:
    """Return the config class of a kind in one of the model's unions."""
    members = union_members(ModelConfig.model_fields[field].annotation)
    return next((member for member in members if kind is not None and kind in kinds(member)), None)
