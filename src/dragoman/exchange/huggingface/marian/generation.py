"""Converts generation settings between `generation_config.json` and dragoman's `search` section."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.settings.load import parse_settings
from dragoman.decode.output import OutputConfig
from dragoman.decode.rules.length_penalty import GNMTPenalty, MeanLogProbability
from dragoman.decode.search import SearchConfig
from dragoman.text.symbols import BOS, PAD, UNK
from dragoman.text.unknown_words import ForbidUnknownConfig

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "do_sample": (False,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "encoder_repetition_penalty": (1, 1.0),
    "encoder_no_repeat_ngram_size": (0,),
    "forced_bos_token_id": (),
    "sequence_bias": (),
    "begin_suppress_tokens": (),
    "exponential_decay_length_penalty": (),
    "penalty_alpha": (),
}
"""Hugging Face settings without a counterpart in dragoman, with their neutral values. Null is always neutral."""


def search_section(content: Mapping[str, Any], path: Path, limit: int, our_ids: Sequence[int]) -> SearchConfig:
    """Return dragoman's search settings.

    limit: the model's number of positions. our_ids: dragoman's id for each Marian id. The maximum output length
    defaults to the number of positions, since Hugging Face's default of 20 tokens is too short for translation. Raises
    ModelError for invalid values.
    """
    settings: dict[str, Any] = {"beam": _count(content, "num_beams", path, 1)}
    exponent = content.get("length_penalty")
    if exponent not in (None, 0, 1):
        warn(f"{path}: length_penalty {exponent} divides by a power of the length, which is not supported: using 1")
    settings["length_penalty"] = {"kind": "none" if exponent == 0 else "mean"}
    length_with_start = _count(content, "max_new_tokens", path, _count(content, "max_length", path, limit) - 1) + 1
    settings |= {"length_factor": 0.0, "length_margin": max(1, min(length_with_start, limit) - 1)}
    settings["minimum_length"] = max(0, _count(content, "min_length", path, 0) - 1)
    settings["no_repeat_ngram"] = _count(content, "no_repeat_ngram_size", path, 0)
    suppressed = _suppressed(content, path)
    if outside := [token for token in suppressed if not 0 <= token < len(our_ids)]:
        raise ModelError(f"{path} forbids the token {outside[0]}, which is not in the vocabulary")
    settings["forbid"] = [*OutputConfig().forbid, *sorted({our_ids[token] for token in suppressed} - {PAD, BOS, UNK})]
    settings["unknown"] = {"kind": "forbid"}  # as in Marian itself, and supported by every engine
    others = [
        f"{name} {content[name]}"
        for name, neutral in _NEUTRAL.items()
        if content.get(name) is not None and content[name] not in neutral
    ]
    if others:
        warn(f"{path}: these settings are not supported and are ignored: {', '.join(others)}")
    try:
        return parse_settings(settings, SearchConfig, f"as {path} describes it")
    except ConfigError as error:
        raise ModelError(str(error)) from None


def _suppressed(content: Mapping[str, Any], path: Path) -> list[int]:
    """Return the ids of tokens that are never generated."""
    words, single_tokens = content.get("bad_words_ids") or [], content.get("suppress_tokens") or []
    if not (
        isinstance(words, list) and all(isinstance(word, list) for word in words) and isinstance(single_tokens, list)
    ):
        raise ModelError(f"{path}: bad_words_ids must be a list of lists, and suppress_tokens a list")
    if longer := [word for word in words if len(word) != 1]:
        warn(f"{path}: bad_words_ids of several tokens, such as {longer[0]}, are ignored")
    suppressed = [*(word[0] for word in words if len(word) == 1), *single_tokens]
    if any(type(token) is not int for token in suppressed):
        raise ModelError(f"{path}: bad_words_ids and suppress_tokens must contain ids")
    return suppressed


def _count(content: Mapping[str, Any], name: str, path: Path, default: int) -> int:
    value = content.get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise ModelError(f"{path}: {name} is {value!r}, but must be a whole number ≥ 0")
    return default if value is None else int(value)


def generation_json(search: SearchConfig, limit: int, our_ids: Sequence[int]) -> dict[str, Any]:
    """Return the content of `generation_config.json` without the ids of special symbols.

    limit: the model's number of positions. our_ids: dragoman's id for each Marian id.
    """
    if isinstance(search.length_penalty, GNMTPenalty) and search.length_penalty.alpha:
        info(
            "Hugging Face does not support the GNMT length penalty: writing length_penalty 1.0, the mean "
            "log-probability, instead"
        )
    unsupported_names = ("coverage_penalty", "minimum_factor", "shrinking", "diversity", "fusion")
    others = [name for name in unsupported_names if getattr(search, name)]
    if others:
        warn(f"Hugging Face does not support {', '.join(f'search.{name}' for name in others)}, which the export omits")
    mean = isinstance(search.length_penalty, MeanLogProbability) or getattr(search.length_penalty, "alpha", 0.0) > 0
    limits = [limit, *([] if search.length_factor else [search.length_margin + 1])]
    longest = min([*limits, *([] if search.maximum_length is None else [search.maximum_length + 1])])
    forbidden = {*search.forbid, PAD, BOS}
    if not isinstance(search.unknown, ForbidUnknownConfig):
        forbidden.discard(UNK)
    return {
        "num_beams": search.beam,
        "length_penalty": 1.0 if mean else 0.0,
        "max_length": longest,
        **({"min_length": search.minimum_length + 1} if search.minimum_length else {}),
        **({"no_repeat_ngram_size": search.no_repeat_ngram} if search.no_repeat_ngram else {}),
        "bad_words_ids": [[marian_id] for marian_id, number in enumerate(our_ids) if number in forbidden],
    }
