"""Short names of model folders."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return short, unique names for folders, which label metrics and name models in addresses.

    Each name is the folder's own name, preceded by as many parent folders as are needed to make it unique. Repeated
    folders are numbered.
    """
    paths = [folder.absolute() for folder in folders]
    names = {path: path.name for path in paths}
    for length in range(2, max((len(path.parts) for path in paths), default=0)):
        counts = Counter(names.values())
        names = {path: "/".join(path.parts[1:][-length:]) if counts[name] > 1 else name for path, name in names.items()}
    numbers: Counter[Path] = Counter()
    distinct = []
    for path in paths:
        numbers[path] += 1
        distinct.append(names[path] if numbers[path] == 1 else f"{names[path]} ({numbers[path]})")
    return distinct
