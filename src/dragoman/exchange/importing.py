"""`import_model`: a model folder from another program's."""

from pathlib import Path

from dragoman.base.log import quietly
from dragoman.exchange.marian.importing import import_marian


def import_model(folder: str | Path, out: str | Path, *, allow_pickle: bool = False, quiet: bool = False) -> Path:
    """Write a model folder of a Hugging Face folder of a Marian model, such as OPUS-MT's; gives the new folder.

    allow_pickle: as in `import_marian`, and so is what it raises.
    """
    with quietly(quiet):
        import_marian(Path(folder), Path(out), allow_pickle)
    return Path(out)
