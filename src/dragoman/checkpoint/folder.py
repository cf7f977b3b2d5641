"""Model folders, which contain all files needed to use a model. None of the files contains code."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.base.errors import ConfigError, ModelError, ResourceError
from dragoman.base.files import atomic_folder, atomic_write, move_into, run_of
from dragoman.base.imports import advice, import_requested_modules, missing_modules
from dragoman.base.log import warn
from dragoman.base.machine.memory import available_memory
from dragoman.base.settings.yaml import parse_yaml
from dragoman.checkpoint.card.card import model_card
from dragoman.checkpoint.card.languages import Samples
from dragoman.checkpoint.meta import FORMAT_VERSION, Meta, dump_meta, parse_meta
from dragoman.checkpoint.run_state import missing_model, training_process, warn_of_unfinished_run
from dragoman.checkpoint.tensors import Shape, model_parameters, read_into, read_shapes, save_tensors
from dragoman.models.initialisation import SkipInitialValues
from dragoman.models.kinds.registry import ModelKind, kind_of, parse_model
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import Tokenizers, VocabularySizes

PARAMETERS, CONFIG, META, CARD = "model.safetensors", "config.yaml", "meta.json", "README.md"
PRECISION = "precision.json"
ALIGNER = "aligner"
"""The folder of the word aligner in the folder of a translation model."""

SHORTLIST = "shortlist.safetensors"
"""The file of the shortlist in the folder of a translation model."""
_FLOATING = ("F64", "F32", "F16", "BF16")
_MAX_LISTED = 20
_SAFE_SIZE = 65_536  # a model with sizes up to this value can be built safely


@dataclass(frozen=True)
class LoadedModel:
    """A model folder in memory.

    model: an nn.Module that implements `models.interface.Model`. text: tokenizers; None for a kind of model without
    text. config: resolved settings of the training run.
    """

    model: Any
    text: Tokenizers | None
    meta: Meta
    config: dict[str, Any]

    @property
    def kind(self) -> ModelKind | None:
        """The record of the model's kind; None if the settings have no `model` section."""
        return kind_of(self.config["model"]) if "model" in self.config else None

    @property
    def tokenizers(self) -> Tokenizers:
        """The model's tokenizers. Raises ModelError for a kind of model without text."""
        if self.text is None:
            raise ModelError("this model processes no text, so it has no tokenizers")
        return self.text


def write_model_folder(
    folder: Path,
    parameters: Mapping[str, Tensor],
    config_yaml: str,
    tokenizers: Tokenizers | None,
    meta: Meta,
    *,
    companions_of: Path | None = None,
    samples: Samples = MappingProxyType({}),
) -> None:
    """Write a model folder. A new folder appears atomically; the files of an existing one are replaced at the end.

    parameters: unique tensors by name (`model_parameters`). config_yaml: resolved settings, with a `model` section.
    tokenizers: None for a kind of model without text. companions_of: a model folder whose word aligner and
    shortlist are copied (`copy_companions`); `folder` must then be new. samples: some texts of each side, for the
    languages on the model card. Raises ResourceError if the disk is full; the
    previous files then remain intact.
    """
    folder = Path(folder)
    exists = folder.is_dir() and any(folder.iterdir())
    with move_into(folder, last=META) if exists else atomic_folder(folder) as staged:
        if tokenizers is not None:
            tokenizers.save(staged)
        (staged / CONFIG).write_text(config_yaml, encoding="utf-8")
        labels = {"format_version": str(FORMAT_VERSION), "step": str(meta.step)}
        save_tensors(staged / PARAMETERS, parameters, labels)
        counts = {name: tensor.numel() for name, tensor in parameters.items()}
        card = model_card(meta, parse_yaml(config_yaml, CONFIG).content, counts, samples)
        (staged / CARD).write_text(card, encoding="utf-8")
        (staged / META).write_text(dump_meta(meta), encoding="utf-8")
        if companions_of is not None:
            copy_companions(companions_of, staged)
        written = {path.name for path in staged.iterdir()}
    for file in folder.glob("tokenizer*.json"):
        if file.name not in written:  # it belongs to an earlier model with a different number of vocabularies
            file.unlink()
    (folder / PRECISION).unlink(missing_ok=True)  # it was measured with other parameters


def copy_companions(source: Path, folder: Path) -> None:
    """Copy the word aligner and the shortlist of the model folder `source`, if it has them, into a new model folder.

    The checkpoints of a run have those of the run, which are trained at its end.
    """
    folders = [Path(source), run_of(Path(source))]
    if (aligner := _first(each / ALIGNER for each in folders)) is not None:
        shutil.copytree(aligner, folder / ALIGNER, ignore=shutil.ignore_patterns(".*"))
    if (shortlist := _first(each / SHORTLIST for each in folders)) is not None:
        shutil.copyfile(shortlist, folder / SHORTLIST)


def _first(paths: Iterable[Path]) -> Path | None:
    """Return the first path that exists."""
    return next((path for path in paths if path.exists()), None)


def read_meta(folder: Path) -> Meta:
    """Read `meta.json`. Raises ModelError if `folder` is not a model folder or has a different format version."""
    _check_files(Path(folder))
    return parse_meta(_read(Path(folder) / META), str(Path(folder) / META))


def read_config(folder: Path) -> dict[str, Any]:
    """Read the resolved settings in `config.yaml`, unvalidated.

    Raises ModelError if `folder` is not a model folder, because it has no such file, or if the file is damaged.

    The modules in its `imports` are not imported, because loading a model must not run code that the user has not
    named. Those of DRAGOMAN_IMPORT are.
    """
    import_requested_modules()
    path = Path(folder) / CONFIG
    if not path.is_file():
        _check_files(Path(folder))
    try:
        content = parse_yaml(_read(path), str(path)).content
    except ConfigError as error:
        raise ModelError(f"{error}. Copy the model folder again from its source") from None
    if not isinstance(content.get("model"), dict):
        raise ModelError(f"{path} has no `model` section, so the architecture is unknown")
    return dict(content)


def parse_folder_model(config: Mapping[str, Any], folder: Path) -> ModelSettings:
    """Parse the `model` section of the settings in a model folder.

    Raises ConfigError for invalid settings, and ModelError if they need modules that are not imported.
    """
    try:
        return parse_model(config["model"], f"in the `model` section of {folder / CONFIG}")
    except ConfigError as error:
        if missing := missing_modules(config):
            raise ModelError(f"{folder} {advice(missing)}") from None
        raise error


def folder_kind(folder: Path) -> ModelKind:
    """Return the kind of the folder's model. Raises ModelError as `read_config` does, and for an unknown kind."""
    _check_files(Path(folder))
    return _kind(read_config(folder), Path(folder))


def check_serves(folder: Path, ability: str) -> ModelKind:
    """Return the kind of the folder's model. Raises ModelError if it lacks an ability (a key of `ABILITIES`)."""
    kind = folder_kind(folder)
    if ability not in kind.abilities:
        raise ModelError(f"{folder} {kind.refusal(ability)}")
    return kind


def load_model_folder(folder: Path, device: torch.device, ability: str | None = None) -> LoadedModel:
    """Load a model folder, and return the model in evaluation mode on `device`.

    ability: a key of `models.kinds.registry.ABILITIES` that the model must support; None accepts any model. Raises
    ModelError if the model lacks the ability. Before any parameter is read, raises ModelError with a list of all
    mismatches (missing files, names and shapes of parameters, vocabulary sizes), and ResourceError if the parameters do
    not fit into memory.
    """
    folder = Path(folder)
    meta = read_meta(folder)
    config = read_config(folder)
    kind = _kind(config, folder) if ability is None else check_serves(folder, ability)
    tokenizers = Tokenizers.load(folder) if kind.tokenizers else None
    sizes = VocabularySizes(0, 0) if tokenizers is None else tokenizers.sizes
    path = folder / PARAMETERS
    shapes, labels = read_shapes(path)
    try:
        model_config = parse_folder_model(config, folder)
        _check_plausible(config["model"], shapes, folder)
        with _without_initial_values():
            model = model_config.build_for(sizes)
    except (ConfigError, RuntimeError) as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None
    expected = model_parameters(model)
    validate(expected, shapes, path, sizes)
    warn_of_unfinished_run(folder, meta)
    needed, free = sum(tensor.numel() * tensor.element_size() for tensor in expected.values()), available_memory()
    if needed > free:
        raise ResourceError(f"{path} needs {needed / 2**20:,.0f} MiB, but only {free / 2**20:,.0f} MiB are free")
    read_into(expected, path)
    return LoadedModel(_move(model, device).eval(), tokenizers, _matching_meta(meta, labels, folder), config)


def validate(
    expected: Mapping[str, Tensor], shapes: Mapping[str, Shape], path: Path, vocabularies: VocabularySizes
) -> None:
    """Compare a file's header with a model's parameters. Raises ModelError with a list of all differences."""
    mismatches = [f"missing: {name} {tuple(tensor.shape)}" for name, tensor in expected.items() if name not in shapes]
    mismatches += [f"unknown: {name} {shape.size}" for name, shape in shapes.items() if name not in expected]
    vocabulary_differs = False
    for name, tensor in expected.items():
        size = tuple(tensor.shape)
        stored = shapes.get(name, Shape(size, "F32"))
        if stored.size != size:
            mismatches.append(f"wrong shape: {name} is {stored.size}, but the configuration requires {size}")
            is_vocabulary = size[:1] in ((vocabularies.source,), (vocabularies.target,))
            vocabulary_differs |= is_vocabulary and stored.size[1:] == size[1:]
        elif tensor.is_floating_point() != (stored.dtype in _FLOATING):
            mismatches.append(f"wrong type: {name} is {stored.dtype}, not {tensor.dtype}")
    if not mismatches:
        return
    more = [f"… and {len(mismatches) - _MAX_LISTED} more"] if len(mismatches) > _MAX_LISTED else []
    listed = "\n  ".join([*mismatches[:_MAX_LISTED], *more])
    if vocabulary_differs:
        sizes = " and ".join(str(size) for size in dict.fromkeys(vocabularies[:2]))
        advice = f"The tokenizers, with {sizes} entries, and the parameters are of different runs"
    else:
        advice = f"{CONFIG} and {PARAMETERS} are of different runs, or one of them was edited"
    raise ModelError(f"{path} does not fit its model ({len(mismatches)} differences):\n  {listed}\n{advice}.")


def mark_unfinished(folder: Path, planned_steps: int | None) -> None:
    """Record in `meta.json` that the run of a model folder has not ended. planned_steps: its number of updates."""
    meta = read_meta(folder).model_copy(update={"unfinished": True, "planned_steps": planned_steps})
    atomic_write(Path(folder) / META, dump_meta(meta))


def _check_files(folder: Path) -> None:
    if not folder.exists():
        raise ModelError(f"the model folder {folder} does not exist")
    if not folder.is_dir():
        raise ModelError(
            f"{folder} is a file, not a model folder: pass the folder that contains {PARAMETERS}, {CONFIG} and {META}"
        )
    missing = [name for name in (PARAMETERS, CONFIG, META) if not (folder / name).is_file()]
    missing += [] if list(folder.glob("tokenizer*.json")) or _needs_no_tokenizers(folder) else ["tokenizer.json"]
    if missing:
        checkpoints = sorted(folder.glob("checkpoints/step-*"))
        siblings = sorted(folder.glob("step-*"))
        advice = ""
        if process := training_process(folder):
            advice = f". Process {process} is still training in this folder"
            advice += f"; {checkpoints[-1]} can be used" if checkpoints else ", and has not validated a model yet"
        elif checkpoints:
            advice = f". Its training has not finished, but {checkpoints[-1]} can be used"
        elif PARAMETERS in missing and (reason := missing_model(folder)) is not None:
            raise ModelError(reason)
        elif siblings:
            advice = f". It contains checkpoints, each of which is a model folder, such as {siblings[-1]}"
        elif models := sorted(path.parent for path in folder.glob(f"*/{PARAMETERS}")):
            advice = f". It contains model folders, such as {models[0]}"
        raise ModelError(f"{folder} is not a model folder: {', '.join(missing)} missing{advice}")


def _kind(config: Mapping[str, Any], folder: Path) -> ModelKind:
    try:
        return kind_of(config["model"])
    except ConfigError as error:
        missing = missing_modules(config)
        raise ModelError(f"{folder} {advice(missing) if missing else f'cannot be loaded: {error}'}") from None


def _needs_no_tokenizers(folder: Path) -> bool:
    """Return whether the folder's model is of a kind without tokenizers; False if the folder is damaged."""
    if not (folder / CONFIG).is_file():
        return False
    try:
        config = read_config(folder)
        return bool(missing_modules(config)) or not _kind(config, folder).tokenizers
    except ModelError:
        return False


def _check_plausible(section: Mapping[str, Any], shapes: Mapping[str, Shape], folder: Path) -> None:
    """Raise ModelError for sizes far larger than in the parameter file, which could exhaust the memory."""
    largest = max((size for shape in shapes.values() for size in shape.size), default=0)
    for name, value in section.items():
        if isinstance(value, Mapping):
            _check_plausible(value, shapes, folder)
        elif isinstance(value, int) and value > (len(shapes) if name == "layers" else max(largest, _SAFE_SIZE)):
            raise ModelError(f"{folder / CONFIG} sets {name}={value}, far more than {PARAMETERS} contains")


def _matching_meta(meta: Meta, labels: Mapping[str, str], folder: Path) -> Meta:
    """Return `meta`; without scores if, after an interrupted write, the parameters are of another step."""
    step = labels.get("step", "")
    if not step.isdecimal() or int(step) == meta.step:
        return meta
    warn(f"{folder / META} describes step {meta.step}, but the parameters are of step {step}: scores are ignored")
    return meta.model_copy(update={"step": int(step), "scores": (), "verdict": None, "averaged_steps": ()})


def _move(model: nn.Module, device: torch.device) -> nn.Module:
    try:
        return model.to(device)
    except torch.OutOfMemoryError as error:
        raise ResourceError(f"the model does not fit into the memory of {device}: try --device cpu") from error
    except (RuntimeError, AssertionError) as error:
        raise ResourceError(f"cannot use the device {device}: {error}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot read {path}: {error}") from None


@contextmanager
def _without_initial_values() -> Iterator[None]:
    """Skip the initialisation of parameters, which would take seconds and allocate memory before validation."""
    with torch.random.fork_rng(devices=[]), SkipInitialValues():
        yield


_PARAMETER_SUFFIXES = (".safetensors", ".bin")


def fingerprint(folder: Path) -> str:
    """Return a digest of the parameters, settings and tokenizers of a model folder in any format.

    The digest does not depend on the folder's path, nor on the model card, `meta.json`, the word aligner and the
    shortlist, so that it remains valid if one of them is added.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(folder).iterdir()):
        if path.name == SHORTLIST:
            continue
        if path.suffix in _PARAMETER_SUFFIXES or path.name == CONFIG or path.name.startswith("tokenizer"):
            with path.open("rb") as file:
                digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def fingerprint_of(folders: str | Path | Sequence[str | Path]) -> str:
    """Return the fingerprint of a single folder, or the joined fingerprints of an ensemble's folders."""
    if isinstance(folders, str | Path):
        return fingerprint(Path(folders))
    return "+".join(fingerprint(Path(folder)) for folder in folders)
