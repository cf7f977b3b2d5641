"""The restrictions that settings ask for, the same for a search and a sampler."""

from collections.abc import Sequence

from dragoman.base.errors import ConfigError
from dragoman.decode.output import OutputConfig
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.forbidden import ForbiddenTokens
from dragoman.decode.rules.minimum_length import MinimumLength
from dragoman.decode.rules.no_repeat import NoRepeatedNgram
from dragoman.decode.rules.rule import Restriction


def restrictions(configs: Sequence[OutputConfig], prompts: Prompts) -> list[Restriction]:
    """Those that at least one of the sentences, each with its own config, needs.

    Raises ConfigError for a length relative to a source where there is none.
    """
    found: list[Restriction] = []
    if any(config.forbid for config in configs):
        found.append(ForbiddenTokens([config.forbid for config in configs], prompts.tokens.device))
    if any(config.minimum_length or config.minimum_factor for config in configs):
        found.append(MinimumLength(_shortest(configs, prompts)))
    if any(config.no_repeat_ngram for config in configs):
        found.append(NoRepeatedNgram([config.no_repeat_ngram for config in configs]))
    return found


def _shortest(configs: Sequence[OutputConfig], prompts: Prompts) -> list[int]:
    if prompts.source is not None:
        sources = prompts.source.sum(1).tolist()
    elif any(config.minimum_factor for config in configs):
        raise ConfigError("search.minimum_factor is relative to a source, which there is none of: use minimum_length")
    else:
        sources = [1] * len(configs)
    return [config.min_length(source) for config, source in zip(configs, sources, strict=True)]
