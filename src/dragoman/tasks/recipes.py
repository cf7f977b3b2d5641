"""`recipes`: the recipes of published experiments, which the package contains as YAML files."""

import shutil
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.base.files import unwritable

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = (_PACKAGE / "recipe_files", _PACKAGE.parents[1] / "recipes")
"""Where wheels contain them, and where a source tree does."""


@dataclass(frozen=True)
class Recipe:
    """A recipe for `dragoman train`. purpose: the first sentence of its header."""

    name: str
    purpose: str
    path: Path

    def copy(self, folder: str | Path) -> Path:
        """Copy the file to a folder, which is created if necessary, and return its new path.

        Raises ConfigError if the folder contains another file of that name, ResourceError if it is not writable.
        """
        copied = Path(folder) / self.path.name
        try:
            copied.parent.mkdir(parents=True, exist_ok=True)
            if copied.exists() and copied.read_bytes() != self.path.read_bytes():
                raise ConfigError(f"{copied} exists and is different: choose another folder, or remove the file")
            shutil.copyfile(self.path, copied)
        except shutil.SameFileError:
            pass
        except OSError as error:
            raise unwritable(copied, error) from None
        return copied


def recipes(name: str | None = None) -> list[Recipe]:
    """Return all recipes, or the one with this name, or else all whose names begin with it.

    Raises ConfigError if there is none.
    """
    folder = next((each for each in _FOLDERS if each.is_dir()), None)
    if folder is None:
        raise ConfigError("this installation contains no recipes: install a wheel, or use the repository's recipes/")
    found = [Recipe(path.stem, _purpose(path), path) for path in folder.glob("*.yaml")]
    found.sort(key=lambda each: each.name)
    if name is None:
        return found
    wanted = name.removesuffix(".yaml")
    chosen = [each for each in found if each.name == wanted] or [
        each for each in found if each.name.startswith(f"{wanted}-")
    ]
    if not chosen:
        names = [each.name for each in found]
        close = get_close_matches(wanted, names, 1)
        advice = f"did you mean {close[0]}?" if close else f"choose {', '.join(names)}"
        raise ConfigError(f"there is no recipe '{name}': {advice}")
    return chosen


def _purpose(path: Path) -> str:
    """Return the first sentence of the comment at the beginning of a recipe."""
    words = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        for word in line.removeprefix("#").split():
            words.append(word)
            if word.endswith((".", ":")) and word != "al.":
                return " ".join(words)
    return " ".join(words)
