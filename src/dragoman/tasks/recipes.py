"""`recipes` lists the recipes of published experiments, which are YAML files in the package."""

import re
import shutil
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.base.files import unwritable

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = (_PACKAGE / "recipe_files", _PACKAGE.parents[1] / "recipes")
"""The recipe folder of a wheel, and that of a source tree."""

_CORPUS = re.compile(r"^#.*\bdragoman data get ([\w/-]+)", re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    """A recipe for `dragoman train`. purpose: the first sentence of the comment at the start of the file."""

    name: str
    purpose: str
    path: Path

    @property
    def corpora(self) -> list[str]:
        """The names of corpora in the recipe's comments that `dragoman data get` downloads."""
        return list(dict.fromkeys(_CORPUS.findall(self.path.read_text(encoding="utf-8"))))

    def copy(self, folder: str | Path) -> Path:
        """Copy the recipe to a folder, which is created if necessary, and return the path of the copy.

        Raises ConfigError if the folder contains a different file of this name, ResourceError if it is not writable.
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
    """Return recipes, sorted by name.

    name: name of a recipe, or the prefix of the names of several recipes; None: all recipes. Raises ConfigError if
    no recipe matches.

    >>> from dragoman import recipes
    >>> [recipe.name for recipe in recipes("homework")][:2]
    ['homework-additive-attention', 'homework-bpe']
    """
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    if folder is None:
        raise ConfigError("this installation contains no recipes: install a wheel, or use the repository's recipes/")
    all_recipes = [Recipe(path.stem, _purpose(path), path) for path in folder.glob("*.yaml")]
    all_recipes.sort(key=lambda recipe: recipe.name)
    if name is None:
        return all_recipes
    stem = name.removesuffix(".yaml")
    matches = [recipe for recipe in all_recipes if recipe.name == stem] or [
        recipe for recipe in all_recipes if recipe.name.startswith(f"{stem}-")
    ]
    if not matches:
        names = [recipe.name for recipe in all_recipes]
        close = get_close_matches(stem, names, 1)
        advice = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(names)}"
        raise ConfigError(f"there is no recipe '{name}': {advice}")
    return matches


def _purpose(path: Path) -> str:
    """Return the first sentence of the comment at the start of a recipe."""
    words = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip("# ") or not line.startswith("#"):
            break
        for word in line.removeprefix("#").split():
            words.append(word)
            if word.endswith(".") and word != "al.":
                return " ".join(words)
    return " ".join(words)
