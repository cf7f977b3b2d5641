"""`evaluate_denoising` measures how well a pre-trained encoder–decoder restores corrupted text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import exp
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError, ModelError
from dragoman.base.log import quietly
from dragoman.base.machine.device import choose_device, use_threads
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.card.card import task_kind
from dragoman.checkpoint.folder import CONFIG, load_model_folder, read_config
from dragoman.data.corpora.inputs import Lines
from dragoman.data.noise.noise import Corruption
from dragoman.evaluation.score import read_documents
from dragoman.tasks.denoising.config import DenoisingDataConfig
from dragoman.tasks.denoising.job import VALIDATION_SEED
from dragoman.tasks.denoising.validator import DenoisingValidator
from dragoman.training.ranks.ranks import Runtime


@dataclass(frozen=True)
class DenoisingScore:
    """The perplexity of restoring a corrupted text.

    loss: cross-entropy per target token (nats). noise: description of the noise, which is that of the training.
    """

    model: str
    documents: int
    noise: str
    loss: float

    @property
    def perplexity(self) -> float:
        """The perplexity per target token."""
        return exp(min(self.loss, 700.0))

    def __str__(self) -> str:
        return (
            f"{self.documents} documents, noise: {self.noise}; perplexity per target token {self.perplexity:.3f} "
            f"(loss {self.loss:.4f} nats)"
        )

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {**asdict(self), "perplexity": self.perplexity}


def is_denoising_folder(folder: Path) -> bool:
    """Return whether the model in a folder was trained to restore corrupted text."""
    return (folder / CONFIG).is_file() and task_kind(read_config(folder)) == "denoising"


def evaluate_denoising(
    model: str | Path,
    text: Lines,
    *,
    documents: str | None = None,
    heading: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> DenoisingScore:
    """Corrupt a text with the noise of a model's training, and compute the perplexity of restoring it.

    The noise is the same in every call. The results are those of `dragoman evaluate perplexity` for a model folder of
    the task `denoising`. text: a file (str or Path) or a list of documents. documents, heading: the division of a file
    into documents, as in `score`. Raises ModelError for another model folder, DataError if the text cannot be read or
    is empty.

    >>> from dragoman import evaluate_denoising, train
    >>> data = {"train": {"text": "valid.en"}, "valid": {"text": "valid.en"}}
    >>> tiny = {"preset": "tiny", "width": 32, "encoder": {"layers": 1}, "decoder": {"layers": 1}}
    >>> recipe = {"task": {"kind": "denoising"}, "data": data, "model": tiny, "out": "runs/denoising"}
    >>> result = train(recipe, {"train.max_steps": 1, "text.subword.size": 300}, quiet=True)
    >>> print(evaluate_denoising("runs/denoising", "test.en"))
    60 documents, noise: span corruption (rate 0.15, mean span 3.0); perplexity per target token ...
    """
    folder = Path(model)
    if not is_denoising_folder(folder):
        raise ModelError(f"{folder} was not trained with task.kind=denoising: evaluate it as a translation model")
    with quietly(quiet):
        use_threads(threads)
        texts: Sequence[str] = read_documents(text, documents, heading)
        if not texts:
            raise DataError("the text contains no documents: give at least one")
        runtime = Runtime(choose_device(device or "auto"))
        loaded = load_model_folder(folder, runtime.device)
        data = parse_settings(loaded.config["data"], DenoisingDataConfig, f"in the data section of {folder / CONFIG}")
        tokenizer = loaded.tokenizers.source
        corruption = Corruption(data.noise, tokenizer, VALIDATION_SEED)
        result = DenoisingValidator(texts, tokenizer, corruption, data.block, loaded.model).run(runtime)
    return DenoisingScore(str(model), len(texts), data.noise.describe(), result["loss"].value)
