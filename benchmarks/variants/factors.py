"""What is varied: factors and their levels, read off the settings, and the settings in which given levels hold."""

from math import prod
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.base.settings.config import kinds, union_members
from dragoman.base.settings.load import parse_settings
from dragoman.lecture.choices import Choice, assemble, choices
from dragoman.models.seq2seq import ModelConfig
from dragoman.tasks.translation.config import TranslationRun

WIDTH, LAYERS, HEADS, FEEDFORWARD = 96, 2, 4, 192
"""Sizes of either side, where its family has such a setting."""
USUAL = {"norm": "pre"}
"""Levels of the centre that are not the settings' own: post, the paper's, needs more steps than this budget has."""
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
"""Beside these, every choice inside a family other than the Transformer is a factor: `recurrent.cell`, …"""
NEEDED = {
    "gradient": {"cross_attention": "hard"},
    "positions.join": {"positions": "sinusoidal"},
    "recurrent.input_feeding": {"recurrent.wiring": "luong"},
    "bytenet.stacked": {"bytenet.cross_attention": "soft"},
}
"""What else is set to vary a factor that the centres do not have, or not with all its levels."""
SAME = {"positions": "sinusoidal", "combine": "project"}
"""What null means at the Transformer's centre."""
DEAR: dict[str, dict[str, float]] = {
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
"""What a level costs: it is taken where it brings as many times more pairs. Up to experts, and for additive scores, it
is how long a run takes, in runs of the centre. The others leave little to compare whatever stands beside them
(BLEU of 0 to 30 around the centres), so that a design full of them would say nothing of the rest.
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
}
"""The levels that stand for a factor in pairs with others, where not all do. What is left out is another pace of a
schedule, reads five times as many tokens, is there for a lecture's argument, or is near another level; the singles have
them all.
"""
Levels = dict[str, str]
"""Levels by factor; a factor that is not named has its usual one."""


def cost(levels: Levels) -> float:
    """The product over all levels."""
    return prod(DEAR.get(factor, {}).get(level, 1.0) for factor, level in levels.items())


def name(choice: Choice) -> str | None:
    """The factor that a choice belongs to, the same on both sides; None for what is no factor here."""
    if choice.path[:2] in (("text", "subword"), ("train", "teacher_forcing")):
        return choice.path[1] if len(choice.path) == 2 else None
    if choice.path[0] != "model" or choice.path[1] == "target_positions":
        return None
    path = choice.path[1:]
    if path[0] not in ("encoder", "decoder") or len(path) == 1:
        factor = ".".join(path)
        return factor if factor in FACTORS else None
    family = dict(choice.within).get(choice.path[:2], "transformer")
    if len(path) == 3 and path[1] in ("attention", "cross_attention") and path[2] in FACTORS:
        return path[2]
    if path[1:] == ("wiring", "input_feeding"):
        return f"{family}.input_feeding"
    if family != "transformer":
        return f"{family}.{path[1]}" if len(path) == 2 else None
    return path[1] if len(path) == 2 and path[1] in FACTORS else None


def factors() -> dict[str, list[str]]:
    """The levels of each factor."""
    found: dict[str, list[str]] = {}
    for choice in choices(TranslationRun):
        factor = name(choice)
        if factor is not None:
            known = found.setdefault(factor, [])
            known += [level for level in choice.levels if level not in known and not _blind(choice, level)]
    return found


def _blind(choice: Choice, level: str) -> bool:
    """Whether nothing would lead from the source to a decoder that has this level: no model that translates has it."""
    return choice.path[-2:] == ("decoder", "cross_attention") and level == "null" and choice.usual != "null"


def build(levels: Levels) -> tuple[dict[str, Any], Levels]:
    """Settings in which `levels` hold, and the levels of all factors that these settings have.

    A level of a factor that does not exist beside the others is passed over. Both sides of a model get the same level
    of a factor that both have.
    """
    effective: Levels = {}
    positions, target_positions = _sides(levels)

    def pick(choice: Choice) -> str | None:
        factor = name(choice)
        if factor is None:
            return target_positions if choice.path == ("model", "target_positions") else None
        level = levels.get(factor, USUAL.get(factor))
        held = level in choice.levels
        # where only one side has the wanted level, it is that side's that counts
        if held or factor not in effective or effective[factor] != level:
            effective[factor] = level if held and level is not None else choice.usual
        if factor == "positions":
            return positions if held else None
        return level if held else None

    settings, _ = assemble(TranslationRun, pick, {"layers": LAYERS, "heads": HEADS, "feedforward": FEEDFORWARD})
    settings.setdefault("model", {}).update(preset=None, width=WIDTH, dropout=0.0)
    return settings, effective


def meant(levels: Levels) -> Levels:
    """With what null stands for at the Transformer's centre in its place."""
    return {factor: SAME[factor] if level == "null" and factor in SAME else level for factor, level in levels.items()}


def refusal(settings: dict[str, Any]) -> str | None:
    """Why there can be no run with these settings, or None."""
    corpus = {"source": "none", "target": "none"}
    train = {"max_epochs": 1, **settings.get("train", {})}
    whole = {**settings, "train": train, "data": {"train": corpus, "valid": corpus}, "out": "none"}
    try:
        parse_settings(whole, TranslationRun, "benchmark")
    except DragomanError as error:
        return str(error).removeprefix("benchmark: ")
    return None


def _sides(levels: Levels) -> tuple[str | None, str | None]:
    """The position schemes of the source and of the target; None where the setting is left out.

    A side that cannot have the wanted scheme, when the other can, has the nearest that it can: a decoder does not know
    the whole target's length, and only self-attention has room for a scheme inside it.
    """
    level = levels.get("positions")
    scheme = _member("positions", level)
    if getattr(scheme, "needs_length", False):
        return level, "sinusoidal"
    reads, writes = (
        getattr(_member(side, levels.get(side, "transformer")), "attends_itself", True)
        for side in ("encoder", "decoder")
    )
    if not getattr(scheme, "inside_attention", False) or reads == writes:
        return level, None
    return (level, "none") if reads else (None, level)


def _member(field: str, kind: str | None) -> Any:
    """The class of a kind in one of the model's unions."""
    members = union_members(ModelConfig.model_fields[field].annotation)
    return next((member for member in members if kind is not None and kind in kinds(member)), None)
