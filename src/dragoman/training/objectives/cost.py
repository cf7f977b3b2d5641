"""What the loss of a batch holds in memory."""

from dragoman.models.footprint import Footprint, evaluate

_FLOAT = 4
_ROWS_OF_LOGITS = 1024
_COPIES_OF_LOGITS = 4


def activation_bytes(footprint: Footprint, tokens: int, longest: int, vocabulary: int) -> int:
    """An estimate of the bytes that a forward pass over `tokens` tokens of each side holds at its end."""
    sentences = tokens / longest
    logits = min(tokens, _ROWS_OF_LOGITS) * vocabulary * _COPIES_OF_LOGITS
    return int(sentences * evaluate(footprint.training, longest)) + logits * _FLOAT
