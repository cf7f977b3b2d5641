"""The restrictions that settings ask for, the same for a search and a sampler."""

from collections.abc import Sequence

from dragoman.decode.output import OutputConfig
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.forbidden import ForbiddenTokens
from dragoman.decode.rules.minimum_length import MinimumLength
from dragoman.decode.rules.rule import Restriction


def restrictions(configs: Sequence[OutputConfig], prompts: Prompts) -> list[Restriction]:
    """Those that at least one of the sentences, each with its own config, needs."""
    found: list[Restriction] = []
    if any(config.forbid for config in configs):
        found.append(ForbiddenTokens([config.forbid for config in configs], prompts.tokens.device))
    if any(config.minimum_length for config in configs):
        found.append(MinimumLength([config.minimum_length for config in configs]))
    return found
