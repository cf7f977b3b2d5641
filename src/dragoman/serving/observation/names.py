"""`distinct_names`: what models are called in metrics."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Each folder's own name, with those of the folders above it where it needs them; one given twice is numbered."""
    paths = [each.absolute() for each in folders]
    names = {path: path.name for path in paths}
    for length in range(2, max((len(path.parts) for path in paths), default=0)):
        counts = Counter(names.values())
        names = {path: "/".join(path.parts[1:][-length:]) if counts[name] > 1 else name for path, name in names.items()}
    numbers: Counter[Path] = Counter()
    found = []
    for path in paths:
        numbers[path] += 1
        found.append(names[path] if numbers[path] == 1 else f"{names[path]} ({numbers[path]})")
    return found
