"""`CheckpointStore`: stores a run's checkpoints, and the snapshots from which training can be resumed."""

import fcntl
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import Tensor

from dragoman.base.errors import ModelError, ResourceError
from dragoman.base.files import atomic_folder, remove_folder, remove_stale_temporaries, unwritable
from dragoman.base.log import warn
from dragoman.checkpoint.run_state import LOCK
from dragoman.checkpoint.tensors import load_tensors, read_shapes, save_tensors, sort_metadata

KEPT_SNAPSHOTS = 2
"""Number of training snapshots to keep: the newest one, and the previous one in case the newest one is damaged."""

_STEP = re.compile(r"step-(\d{8,})")
_STATE = "state.json"


@dataclass(frozen=True)
class TrainingSnapshot:
    """The state of a run, from which training can be resumed.

    tensors: tensors by name, by file stem (`model`, `optimiser`, `average`). state: JSON values. folder: folder of the
    snapshot. shards: by file stem, the folders in which each rank wrote its shards of the tensors (see
    `checkpoint.shards`).
    """

    step: int
    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]
    folder: Path
    shards: dict[str, Path] = field(default_factory=dict)


class CheckpointStore:
    """Manages a run folder: `checkpoints/step-…` (model folders) and `training/step-…` (snapshots).

    owned: whether this process locks the folder; False for a process that only reads a folder locked by another one.
    Raises ResourceError if another process has locked the folder or it is not writable. Call `close` at the end, or use
    the store as a context manager.
    """

    def __init__(self, run_folder: Path, owned: bool = True) -> None:
        self.run_folder = Path(run_folder)
        self._checkpoints, self._training = self.run_folder / "checkpoints", self.run_folder / "training"
        self._lock = -1
        if not owned:
            return
        try:
            for folder in (self._checkpoints, self._training):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.run_folder, error) from None
        self._lock = _lock(self.run_folder / LOCK)
        for folder in (self.run_folder, self._checkpoints, self._training):
            remove_stale_temporaries(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the folder. The kernel also unlocks it when the process ends for any reason."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def checkpoint_folder(self, step: int) -> Path:
        """Return the path of the model folder for `step`."""
        return self._checkpoints / f"step-{step:08d}"

    def checkpoints(self) -> list[Path]:
        """Return the model folders, sorted by step."""
        return list(checkpoints_by_step(self.run_folder).values())

    def prune(self, keep: set[Path]) -> None:
        """Delete all checkpoints that are not in `keep`."""
        resolved = {path.resolve() for path in keep}
        for folder in self.checkpoints():
            if folder.resolve() not in resolved:
                remove_folder(folder)

    def discard_after(self, step: int) -> None:
        """Delete checkpoints and snapshots newer than `step`. A run that resumes from `step` writes them again."""
        for parent in (self._checkpoints, self._training):
            for folder_step, folder in reversed(_step_folders(parent)):
                if folder_step > step:
                    remove_folder(folder)

    def commit_training(self, step: int, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
        """Write a snapshot atomically and durably, then delete all but the newest `KEPT_SNAPSHOTS` snapshots.

        tensors: tensors by name, by file stem. state: JSON values. Raises ResourceError if the disk is full; earlier
        snapshots then remain intact.
        """
        with self.staged_training(step, state) as folder:
            for stem, named in tensors.items():
                save_tensors(folder / f"{stem}.safetensors", named, {"step": str(step)})

    @contextmanager
    def staged_training(self, step: int, state: Mapping[str, Any]) -> Iterator[Path]:
        """Yield a folder for safetensors files, and store it on exit as `commit_training` does."""
        with atomic_folder(self._training / f"step-{step:08d}", replace=True) as folder:
            yield folder
            files = sorted(folder.rglob("*.safetensors"))
            for file in files:
                sort_metadata(file)
            sums = {file.relative_to(folder).as_posix(): _checksum(file) for file in files}
            content = {"step": step, "checksums": sums, "state": dict(state)}
            (folder / _STATE).write_text(json.dumps(content, indent=1), encoding="utf-8")
        for _, old in _step_folders(self._training)[:-KEPT_SNAPSHOTS]:
            remove_folder(old)

    def latest_training(self) -> TrainingSnapshot | None:
        """Return the newest intact snapshot, or None if there are no snapshots. Newer damaged ones cause warnings.

        Raises ModelError if all snapshots are damaged, because only the user can decide to start over.
        """
        folders = _step_folders(self._training)
        for step, folder in reversed(folders):
            try:
                return _load(step, folder)
            except ModelError as error:
                warn(f"cannot resume from {folder}: {error}")
        if folders:
            raise ModelError(f"no training state in {self._training} can be loaded: start over in another folder")
        return None


def checkpoints_by_step(run_folder: Path) -> dict[int, Path]:
    """Return the model folders of a run by step, in rising order, without locking the run folder."""
    return dict(_step_folders(Path(run_folder) / "checkpoints"))


def _step_folders(parent: Path) -> list[tuple[int, Path]]:
    """Return the steps and paths of the `step-…` folders in `parent`, sorted by step."""
    matches = [(_STEP.fullmatch(path.name), path) for path in parent.iterdir()] if parent.is_dir() else []
    return sorted((int(match[1]), path) for match, path in matches if match and path.is_dir())


def _load(step: int, folder: Path) -> TrainingSnapshot:
    try:
        content = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        sums, state = dict(content["checksums"]), dict(content["state"])
        stored = int(content["step"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{folder / _STATE} is damaged or missing: {error!r}") from None
    if stored != step:
        raise ModelError(f"{folder / _STATE} is of step {stored}: the folder was renamed")
    tensors, shards = {}, {}
    for name, checksum in sums.items():
        file = folder / name
        if "/" in name:
            read_shapes(file)  # raises ModelError if the file is damaged
            shards[file.parent.name] = file.parent
        else:
            tensors[file.stem], _ = load_tensors(file)
        if _checksum(file) != checksum:
            raise ModelError(f"the checksum of {file} is wrong: the file has changed since it was written")
    return TrainingSnapshot(step, tensors, state, folder, shards)


def _checksum(file: Path) -> int:
    """Return the CRC-32 of a file. It detects changed values, which safetensors does not."""
    checksum = 0
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _lock(path: Path) -> int:
    """Lock `path` in the kernel, which releases the lock when the process ends. Return the descriptor to close."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        raise ResourceError(
            f"{path.parent} is in use by process {owner or 'unknown'}, which is training in it: wait for it to end, or "
            "choose another folder"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor
