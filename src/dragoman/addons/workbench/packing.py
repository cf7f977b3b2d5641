"""The content of a view as bytes: JSON values, followed by the numbers of the figures without loss.

The bytes are the length of the JSON text (4 bytes, little-endian), the text, and the arrays. Each array starts at a
multiple of 8 bytes, so that the browser reads it in place; its `offset` counts from the end of the text.
"""

import json
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.addons.workbench.views.view import ViewContent
from dragoman.base.errors import DataError

MAX_BYTES = 64_000_000
"""Maximum size of the arrays of a view. The weights of 144 heads need as many bytes for 333 tokens."""

_ALIGNMENT = 8


def pack(content: ViewContent, fragment: str, names: Collection[str]) -> bytes:
    """Return the facts, and the figures with the given names. fragment: the state, as the server has understood it.

    Raises DataError if the arrays are larger than a page can show.
    """
    arrays: list[NDArray[Any]] = []
    offset, figures = 0, {}
    for name in names:
        description = content.figures[name].description()
        for key, array in content.figures[name].arrays().items():
            description["arrays"][key]["offset"] = offset
            arrays.append(array)
            offset += _padded(array.nbytes)
        figures[name] = description
    if offset > MAX_BYTES:
        raise DataError(
            f"the numbers of this view take {offset // 1_000_000} MB, but the page shows at most "
            f"{MAX_BYTES // 1_000_000} MB: shorten the text, or use `dragoman inspect`"
        )
    values = {"state": fragment, "facts": content.facts, "figures": figures}
    text = json.dumps(values, ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-(4 + len(text)) % _ALIGNMENT)
    parts = [len(text).to_bytes(4, "little"), text]
    for array in arrays:
        raw = np.ascontiguousarray(array).tobytes()
        parts += [raw, bytes(_padded(len(raw)) - len(raw))]
    return b"".join(parts)


def _padded(size: int) -> int:
    return size + -size % _ALIGNMENT
