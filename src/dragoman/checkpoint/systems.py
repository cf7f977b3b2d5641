"""The systems of a model folder: the trained model itself, and statistical models that were estimated beside it.

A run on a small corpus estimates statistical models on the same pairs, because they are often better there. `meta.json`
records the scores of all systems on the same validation pairs, and the folder translates with the best of them.
"""

from collections.abc import Sequence
from pathlib import Path

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.files import atomic_write
from dragoman.base.table import Table
from dragoman.checkpoint.card.markdown import with_section
from dragoman.checkpoint.confidence import Confidence
from dragoman.checkpoint.folder import CARD, META, read_meta
from dragoman.checkpoint.meta import HybridWeights, Meta, SystemRecord, dump_meta, parse_meta
from dragoman.checkpoint.verdict import Verdict

NEURAL = "neural"
"""The name of the system that a folder's own files contain, whatever its kind."""

PHRASE_BASED, HYBRID = "phrase_based", "hybrid"
"""The names of the phrase-based model, and of its translations that the neural model helps to choose."""

SYSTEMS = "systems"
"""The folder of the other systems in a model folder."""


def system_folder(folder: Path, name: str | None = None) -> Path:
    """Return the model folder of a system: of the best one by default, which is `folder` itself if it has no others.

    name: a name in `Meta.systems`, or neural. Raises ConfigError for an unknown name, and ModelError for a damaged
    `meta.json` and if the folder itself or that of the system is missing.
    """
    chosen = system_record(folder, name)
    if chosen is None or chosen.name == NEURAL:
        return folder
    found = folder / chosen.folder
    if not found.is_dir():
        raise ModelError(
            f"{folder} translates with the system {chosen.name}, but {found} is missing: copy the whole folder, or "
            f"select the model itself (--system {NEURAL})"
        )
    return found


def system_record(folder: Path, name: str | None = None) -> SystemRecord | None:
    """Return the record of a system of a model folder, by default of the best one; None if it is not recorded.

    name: as in `system_folder`, whose errors are raised.
    """
    systems = _systems(folder)
    if name is None:
        return systems[0] if systems else None
    chosen = next((each for each in systems if each.name == name), None)
    if chosen is None and name != NEURAL:
        if not folder.is_dir():
            read_meta(folder)  # raises ModelError
        names = ", ".join(each.name for each in systems) or NEURAL
        raise ConfigError(f"{folder} has no system {name!r}: expected one of {names}")
    return chosen


def hybrid_weights(folder: str | Path | Sequence[str | Path], name: str | None) -> HybridWeights | None:
    """Return the weights of a system that is a hybrid; None for other systems and for ensembles."""
    folders = _paths(folder)
    record = system_record(folders[0], name) if len(folders) == 1 else None
    return None if record is None else record.hybrid


def system_folders(folder: str | Path | Sequence[str | Path], name: str | None) -> list[Path]:
    """Return the folder of a system of a model folder, as `system_folder` does, or the folders of an ensemble.

    Raises ConfigError for an ensemble of other systems than the folders' own models.
    """
    folders = _paths(folder)
    if len(folders) == 1:
        return [system_folder(folders[0], name)]
    if name not in (None, NEURAL):
        raise ConfigError(f"an ensemble consists of the neural models of its folders: leave out --system {name}")
    return folders


def _paths(folder: str | Path | Sequence[str | Path]) -> list[Path]:
    return [Path(folder)] if isinstance(folder, str | Path) else [Path(each) for each in folder]


def describe_choice(folder: Path, systems: Sequence[SystemRecord], name: str, metric: str) -> str:
    """Return how a folder chooses between its systems, the best first, by a metric that all of them recorded.

    name: the system that the reader has used, which is named if it is not the best.
    """
    best = systems[0]
    rival = next(each for each in systems[1:] if each.name == NEURAL) if best.name != NEURAL else systems[1]
    values = [found.value for each in (best, rival) if (found := each.score(metric)) is not None]
    difference = f" by {values[0] - values[1]:.2f} {metric}" if len(values) == 2 else ""
    text = (
        f"{folder} translates with the {best.title}, which is better than the {rival.title}{difference} on the "
        f"validation pairs (--system {rival.name} selects the {rival.title})."
    )
    used = next((each.title for each in systems if each.name == name), name)
    return text if name == best.name else f"These are the scores of the {used}. {text}"


def verdict_of(folder: Path, name: str | None = None) -> Verdict | None:
    """Return the verdict of the training on a system of a model folder, by default the best one; None without any.

    Raises ModelError for a damaged `meta.json`.
    """
    meta = _read_meta(folder)
    verdict = None if meta is None else meta.verdict
    return verdict if verdict is not None and verdict.system == _chosen_name(meta, name) else None


def confidence_of(folder: Path, name: str | None = None) -> Confidence | None:
    """Return the confidence that was measured for a system of a model folder, by default the best one; None without.

    Raises ModelError for a damaged `meta.json`.
    """
    meta = _read_meta(folder)
    confidence = None if meta is None else meta.confidence
    return confidence if confidence is not None and confidence.system == _chosen_name(meta, name) else None


def _chosen_name(meta: Meta | None, name: str | None) -> str:
    """Return the name of a system, by default of the best one."""
    return name or (meta.systems[0].name if meta is not None and meta.systems else NEURAL)


def write_verdict(folder: Path, verdict: Verdict) -> None:
    """Record a verdict in the metadata of a model folder and on its card."""
    card = folder / CARD
    atomic_write(card, with_section(card.read_text(encoding="utf-8"), "Is it good?", verdict.card_section()))
    atomic_write(folder / META, dump_meta(read_meta(folder).model_copy(update={"verdict": verdict})))


def _systems(folder: Path) -> tuple[SystemRecord, ...]:
    meta = _read_meta(folder)
    return () if meta is None else meta.systems


def _read_meta(folder: Path) -> Meta | None:
    """Return the metadata; None if the folder has no `meta.json`, about which its loader complains."""
    path = folder / META
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return parse_meta(text, str(path))


def write_systems(folder: Path, systems: Sequence[SystemRecord]) -> None:
    """Record the systems of a model folder in its metadata and on its card.

    systems: the best first; that of the folder itself has the name `NEURAL` and no folder.
    """
    card = folder / CARD
    atomic_write(card, with_section(card.read_text(encoding="utf-8"), "Systems", _card_section(systems)))
    meta = read_meta(folder).model_copy(update={"systems": tuple(systems)})
    atomic_write(folder / META, dump_meta(meta))


def _card_section(systems: Sequence[SystemRecord]) -> list[str]:
    names = list(dict.fromkeys(score.metric for each in systems for score in each.scores))
    values = [{score.metric: f"{score.value:.2f}" for score in each.scores} for each in systems]
    rows = [
        (each.title, *(scores.get(name, "–") for name in names), f"`{each.folder or '.'}`")
        for each, scores in zip(systems, values, strict=True)
    ]
    data = next((score.data for each in systems for score in each.scores), "")
    return [
        f"All systems were trained on the same pairs and scored on the same validation pairs{data and f', {data}'}. "
        "The folder translates with the first one; `--system` (in Python `system=`) selects another. The validation "
        "pairs also selected the checkpoint of the neural model and the weights of the phrase-based model.",
        "",
        *Table([("system", *names, "folder"), *rows]).markdown(),
    ]
