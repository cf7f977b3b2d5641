"""`length_limit`: the maximum number of tokens of the inputs of a run with labels."""

from dragoman.base.errors import ConfigError
from dragoman.models.initialisation import without_storage
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.tokenizers import Tokenizers


def length_limit(
    config: EncoderOnlyConfig, tokenizers: Tokenizers, length: int | None, longest: int | None
) -> int | None:
    """Return `data.length`, or else the smaller of `longest` and the model's number of positions; None for no limit.

    longest: default of the task. Raises ConfigError if `length` exceeds the number of positions.
    """
    with without_storage():
        model = config.build_for(tokenizers.sizes)
    positions = model.limit.positions
    if positions is not None and length is not None and length > positions:
        raise ConfigError(
            f"data.length is {length} tokens, but the model has {positions} positions ({model.limit.setting}): "
            f"lower data.length, or raise {model.limit.setting}"
        )
    return length or min((each for each in (positions, longest) if each is not None), default=None)
