"""Every value of every setting of a model is computed equally by CTranslate2, or refused by name."""

from itertools import chain

import pytest
from exported_models import largest_difference, random_model
from variant_settings import Settings, Single, holding, label, made, refusal, singles

from dragoman.base.errors import ModelError
from dragoman.exchange.ctranslate2.expressible import DECISIONS, check_expressible
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.tokenizers import TextConfig, train_tokenizers

pytest.importorskip("ctranslate2")

REFUSED = {
    "activation": {"geglu", "geglu_tanh"},
    "bias": {"false"},
    "combine": {"concatenate", "mean"},
    "embedding_norm": {"layer", "rms", "batch"},
    "experts": {"set"},
    "feedforward_bias": {"false"},
    "join": {"concatenate"},
    "key_width": {"6"},
    "kind": {"recurrent", "convolutional", "bytenet", "mean", "sum", "hard", "window", "linear", "average", "ssru"},
    "kv_heads": {"1"},
    "normalisation": {"batch"},
    "normaliser": {"sum"},
    "positions": {"alibi", "bucketed", "fraction"},
    "projections": {"false"},
    "query_width": {"2"},
    "residual": {"false"},
    "scale_output": {"true"},
    "scorer": {"general", "additive", "leaky_relu"},
    "start_symbol": {"eos"},
    "value_width": {"6"},
}
"""Values that CTranslate2 cannot express, by the last part of the setting's name."""
FAMILIES = {"encoder", "decoder", "attention", "cross_attention"}
GROUPS = {*FAMILIES, "normalisation", "positions", "target_positions", "scorer"}


def accepted(single: Single, refused: bool) -> Settings | None:
    """Return the simplest accepted settings with a value, which contain nothing else that is refused."""
    choice, level = single
    # some positions are concatenated by default, and tables can be frozen only with a separate projection
    added = {("positions", "join"): "add", ("target_positions", "join"): "add", ("tie_projection",): "false"}
    fixed = {**added, **dict(choice.conditions), choice.path: level}
    candidates = chain(holding(single, tries=0), [made(fixed)[0]], holding(single, tries=40))
    possible = (settings for settings in candidates if refusal(settings) is None and not unused(choice.path, settings))
    return next((settings for settings in possible if refused or not reasons(settings)), None)


def unused(path: tuple[str, ...], settings: Settings) -> bool:
    """Return whether the setting is a width of projections in settings without projections."""
    group = settings
    for name in path[:-1]:
        group = group.get(name) or {}
    return path[-1].endswith("_width") and group.get("projections") is False


def reasons(settings: Settings) -> str:
    try:
        check_expressible(ModelConfig.model_validate(settings))
    except ModelError as error:
        return str(error)
    return ""


def expected_refusal(choice_path: tuple[str, ...], level: str) -> bool:
    name = choice_path[-1]
    name = {"target_positions": "positions"}.get(name, name)
    return level in REFUSED["kind" if name in FAMILIES else name] if name in REFUSED or name in FAMILIES else False


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 6))])
def test_every_setting_is_equal_or_refused(part: int) -> None:
    text = {"subword": {"kind": "character", "min_frequency": 1}}
    tokenizers = train_tokenizers(TextConfig.model_validate(text), ["abcdefgh"], ["abcdefgh"])
    equal = 0
    for choice, level in list(singles())[part::6]:
        if any(expected_refusal(path, kind) for path, kind in choice.conditions):
            continue  # its kind is tested as a value of its own
        refused = expected_refusal(choice.path, level)
        settings = accepted((choice, level), refused)
        name = label((choice, level))
        if settings is None:
            assert (choice.path, level) == (("target_positions",), "fraction"), f"{name} is refused whatever is beside"
            continue  # a decoder cannot know the length of its output
        if refused:
            shown = f"kind={level}" if choice.path[-1] in GROUPS else f"{choice.path[-1]}="
            assert shown in reasons(settings), f"{name}: {reasons(settings) or 'is not refused'}"
        else:
            loaded = random_model(ModelConfig.model_validate(settings), tokenizers)
            assert largest_difference(loaded, (1, 3, 6)) < 1e-4, name
            equal += 1
    assert equal > 6


@pytest.mark.parametrize("config", DECISIONS, ids=lambda config: config.__name__)
def test_every_field_is_decided(config: type) -> None:
    fields = set(config.model_fields)  # type: ignore[attr-defined]
    decided = set(DECISIONS[config])
    assert fields <= decided, "decide what CTranslate2 makes of these settings"
