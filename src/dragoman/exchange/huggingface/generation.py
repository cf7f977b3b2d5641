"""Converts generation settings between `generation_config.json` and dragoman's `search` section."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.settings.load import parse_settings
from dragoman.decode.output import OutputConfig
from dragoman.decode.rules.length_penalty import GNMTPenalty, MeanLogProbability
from dragoman.decode.sampling import GenerationConfig
from dragoman.decode.search import SearchConfig
from dragoman.exchange.huggingface.settings import C
from dragoman.text.symbols import BOS, PAD, UNK
from dragoman.text.unknown_words import ForbidUnknownConfig

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "do_sample": (False,),
    "num_return_sequences": (1,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "encoder_repetition_penalty": (1, 1.0),
    "encoder_no_repeat_ngram_size": (0,),
    "sequence_bias": (),
    "begin_suppress_tokens": (),
    "exponential_decay_length_penalty": (),
    "penalty_alpha": (),
}
"""Hugging Face settings without a counterpart in dragoman, with their neutral values. Null is always neutral."""


_NEUTRAL_SAMPLING: Mapping[str, tuple[Any, ...]] = {
    **{name: values for name, values in _NEUTRAL.items() if name != "do_sample"},
    "min_length": (0,),
    "num_beams": (1,),
    "typical_p": (1, 1.0),
    "epsilon_cutoff": (0, 0.0),
    "eta_cutoff": (0, 0.0),
    "min_p": (),
}
_DEFAULT_TOP_K = 50
"""Hugging Face's default of top_k."""


def search_section(
    content: Mapping[str, Any], path: Path, limit: int | None, our_ids: Sequence[int], start: int | None = None
) -> SearchConfig:
    """Return dragoman's search settings.

    limit: the model's number of positions; None for any number. our_ids: dragoman's id for each id of Hugging Face.
    start: Hugging Face's id of the symbol that precedes every text; None for a model without such a symbol. Without a
    maximum output length, dragoman's default applies, which depends on the length of the source, since Hugging Face's
    default of 20 tokens is too short for translation. Raises ModelError for invalid values.
    """
    settings: dict[str, Any] = {"beam": _count(content, "num_beams", path, 1)}
    exponent = content.get("length_penalty")
    if exponent not in (None, 0, 1):
        warn(f"{path}: length_penalty {exponent} divides by a power of the length, which is not supported: using 1")
    settings["length_penalty"] = {"kind": "none" if exponent == 0 else "mean"}
    settings |= _longest(content, path, limit)
    shortest = _count(content, "min_length", path, 0) - 1  # with the symbol that starts an output
    settings["minimum_length"] = _count(content, "min_new_tokens", path, max(0, shortest))
    settings["no_repeat_ngram"] = _count(content, "no_repeat_ngram_size", path, 0)
    settings["forbid"] = [*OutputConfig().forbid, *_forbidden(content, path, our_ids)]
    forced = content.get("forced_bos_token_id")
    if forced is None and content.get("force_bos_token_to_be_generated") is True:  # the key of older files
        forced = start
    if forced not in (None, start):
        raise ModelError(f"{path}: forced_bos_token_id is {forced}, but texts do not start with this token")
    settings["force_start"] = start is None or forced is not None
    settings["unknown"] = {"kind": "forbid"}  # as in Marian itself, and supported by every engine
    _warn_of_others(content, path, _NEUTRAL)
    return _parse(settings, SearchConfig, path)


def sampling_section(content: Mapping[str, Any], path: Path, our_ids: Sequence[int]) -> GenerationConfig:
    """Return the generation settings of a language model.

    our_ids: dragoman's id for each id of Hugging Face. The settings of sampling are used only with `do_sample`. If it
    is false, the temperature is 0; if it is missing, dragoman's defaults apply. Raises ModelError for invalid
    values.
    """
    settings: dict[str, Any] = {
        "minimum_length": _count(content, "min_new_tokens", path, 0),
        "no_repeat_ngram": _count(content, "no_repeat_ngram_size", path, 0),
        "forbid": [*OutputConfig().forbid, *_forbidden(content, path, our_ids)],
    }
    if longest := _count(content, "max_new_tokens", path, 0):
        settings["maximum_length"] = longest
    elif _count(content, "max_length", path, 0):
        warn(f"{path}: max_length includes the prompt, which is not supported: set --max-tokens instead")
    if content.get("do_sample") is True:
        settings |= {name: content[name] for name in ("temperature", "top_p") if content.get(name) is not None}
        settings["top_k"] = _count(content, "top_k", path, _DEFAULT_TOP_K) or None
    elif content.get("do_sample") is False:
        settings["temperature"] = 0
    _warn_of_others(content, path, _NEUTRAL_SAMPLING)
    return _parse(settings, GenerationConfig, path)


def sampling_json(search: GenerationConfig, our_ids: Sequence[int]) -> dict[str, Any]:
    """Return the content of `generation_config.json` for a language model, without the ids of special symbols.

    our_ids: dragoman's id for each id of Hugging Face.
    """
    forbidden = {*search.forbid} - {PAD, BOS, UNK}
    sampled = {"do_sample": True, "temperature": search.temperature, "top_k": search.top_k or 0}
    sampled |= {} if search.top_p is None else {"top_p": search.top_p}
    return {
        **({"do_sample": False} if search.temperature == 0 else sampled),
        **({"max_new_tokens": search.maximum_length} if search.maximum_length is not None else {}),
        **({"min_new_tokens": search.minimum_length} if search.minimum_length else {}),
        **({"no_repeat_ngram_size": search.no_repeat_ngram} if search.no_repeat_ngram else {}),
        **_forbidden_json(forbidden, our_ids),
    }


def _longest(content: Mapping[str, Any], path: Path, limit: int | None) -> dict[str, Any]:
    """Return the settings of the maximum output length. Hugging Face counts the symbol that starts an output."""
    longest = _count(content, "max_new_tokens", path, _count(content, "max_length", path, 0) - 1)
    if longest < 0:  # neither is set
        return {} if limit is None else {"maximum_length": max(1, limit - 1)}
    return {"length_factor": 0.0, "length_margin": max(1, longest if limit is None else min(longest, limit - 1))}


def _forbidden(content: Mapping[str, Any], path: Path, our_ids: Sequence[int]) -> list[int]:
    """Return the ordinary tokens that are never generated, as dragoman's ids."""
    suppressed = _suppressed(content, path)
    if outside := [token for token in suppressed if not 0 <= token < len(our_ids)]:
        raise ModelError(f"{path} forbids the token {outside[0]}, which is not in the vocabulary")
    return sorted({our_ids[token] for token in suppressed} - {PAD, BOS, UNK})


def _warn_of_others(content: Mapping[str, Any], path: Path, neutral: Mapping[str, tuple[Any, ...]]) -> None:
    """Warn of settings without a counterpart. neutral: their values that have no effect."""
    others = [
        f"{name} {content[name]}"
        for name, values in neutral.items()
        if content.get(name) is not None and content[name] not in values
    ]
    if others:
        warn(f"{path}: these settings are not supported and are ignored: {', '.join(others)}")


def _parse(settings: Mapping[str, Any], config: type[C], path: Path) -> C:
    try:
        return parse_settings(settings, config, f"as {path} describes it")
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


def generation_json(
    search: SearchConfig, limit: int | None, our_ids: Sequence[int], start: int | None = None
) -> dict[str, Any]:
    """Return the content of `generation_config.json` without the ids of special symbols.

    limit, our_ids, start: as in `search_section`.
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
    longest = _longest_json(search, limit)
    if not longest:
        info(
            "Hugging Face does not limit outputs by the length of the source: the export sets no max_length, so choose "
            "max_new_tokens when you generate"
        )
    forbidden = {*search.forbid, PAD, BOS}
    if not isinstance(search.unknown, ForbidUnknownConfig):
        forbidden.discard(UNK)
    return {
        "num_beams": search.beam,
        "length_penalty": 1.0 if mean else 0.0,
        **longest,
        **({"min_length": search.minimum_length + 1} if search.minimum_length else {}),
        **({"no_repeat_ngram_size": search.no_repeat_ngram} if search.no_repeat_ngram else {}),
        **({"forced_bos_token_id": start} if search.force_start and start is not None else {}),
        **_forbidden_json(forbidden, our_ids),
    }


def _longest_json(search: SearchConfig, limit: int | None) -> dict[str, int]:
    """Return the setting of the maximum output length; none if `_longest` returns the same settings without it."""
    longest = search.maximum_length
    if search.length_factor and longest == (None if limit is None else max(1, limit - 1)):
        return {}
    limits = [
        limit,
        None if search.length_factor else search.length_margin + 1,
        None if longest is None else longest + 1,
    ]
    return {"max_length": min(each for each in limits if each is not None)}


def _forbidden_json(forbidden: Collection[int], our_ids: Sequence[int]) -> dict[str, Any]:
    tokens = [[theirs] for theirs, number in enumerate(our_ids) if number in forbidden]
    return {"bad_words_ids": tokens} if tokens else {}
