"""`evaluate_denoising` measures how well a pre-trained model restores corrupted or masked text."""

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
from dragoman.checkpoint.folder import CONFIG, LoadedModel, load_model_folder, read_config
from dragoman.data.batches.masking import Masker
from dragoman.data.corpora.inputs import Lines
from dragoman.data.noise.noise import Corruption
from dragoman.evaluation.score import read_documents
from dragoman.tasks.corpora.held_out_text import HeldOutText
from dragoman.tasks.denoising.config import DenoisingDataConfig
from dragoman.tasks.denoising.job import VALIDATION_SEED
from dragoman.tasks.denoising.validator import DenoisingValidator
from dragoman.tasks.masked_language_model.config import MaskedDataConfig
from dragoman.tasks.masked_language_model.job import VALIDATION_SEED as MASKING_SEED
from dragoman.tasks.masked_language_model.validator import MaskedTextValidator
from dragoman.training.ranks.ranks import Runtime

_TASKS = ("denoising", "masked_language_model")


@dataclass(frozen=True)
class DenoisingScore:
    """The perplexity of restoring a corrupted text.

    loss: cross-entropy per target token or masked token (nats). noise: description of the noise, which is that of the
    training. accuracy: percentage of the masked tokens that are restored; None for a denoising model.
    """

    model: str
    documents: int
    noise: str
    loss: float
    accuracy: float | None = None

    @property
    def perplexity(self) -> float:
        """The perplexity per target token."""
        return exp(min(self.loss, 700.0))

    def __str__(self) -> str:
        token = "target" if self.accuracy is None else "masked"
        accuracy = "" if self.accuracy is None else f", accuracy {self.accuracy:.2f}"
        return (
            f"{self.documents} documents, noise: {self.noise}; perplexity per {token} token {self.perplexity:.3f} "
            f"(loss {self.loss:.4f} nats){accuracy}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        return {**values, "perplexity": self.perplexity}


def restores_text(folder: Path) -> bool:
    """Return whether the model in a folder was trained to restore corrupted or masked text."""
    return (folder / CONFIG).is_file() and task_kind(read_config(folder)) in _TASKS


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
    the task `denoising`, or of `masked_language_model`, whose noise hides tokens. text: a file (str or Path) or a list
    of documents. documents, heading: the division of a file into documents, as in `score`. Raises ModelError for
    another model folder, DataError if the text cannot be read or is empty.

    >>> from dragoman import evaluate_denoising, train
    >>> data = {"train": {"text": "valid.en"}, "valid": {"text": "valid.en"}}
    >>> tiny = {"preset": "tiny", "width": 32, "encoder": {"layers": 1}, "decoder": {"layers": 1}}
    >>> recipe = {"task": {"kind": "denoising"}, "data": data, "model": tiny, "out": "runs/denoising"}
    >>> result = train(recipe, {"train.max_steps": 1, "text.subword.size": 300}, quiet=True)
    >>> print(evaluate_denoising("runs/denoising", "test.en"))
    60 documents, noise: span corruption (rate 0.15, mean span 3.0); perplexity per target token ...
    """
    folder = Path(model)
    if not restores_text(folder):
        read_config(folder)
        raise ModelError(f"{folder} was not trained to restore text (task.kind={' or '.join(_TASKS)})")
    with quietly(quiet):
        use_threads(threads)
        texts: Sequence[str] = read_documents(text, documents, heading)
        if not texts:
            raise DataError("the text contains no documents: give at least one")
        runtime = Runtime(choose_device(device or "auto"))
        loaded = load_model_folder(folder, runtime.device)
        if task_kind(loaded.config) == "masked_language_model":
            return _restore_masks(str(model), texts, loaded, runtime)
        data = parse_settings(loaded.config["data"], DenoisingDataConfig, f"in the data section of {folder / CONFIG}")
        tokenizer = loaded.tokenizers.source
        corruption = Corruption(data.noise, tokenizer, VALIDATION_SEED)
        result = DenoisingValidator(texts, tokenizer, corruption, data.block, loaded.model).run(runtime)
    return DenoisingScore(str(model), len(texts), data.noise.describe(), result["loss"].value)


def _restore_masks(model: str, texts: Sequence[str], loaded: LoadedModel, runtime: Runtime) -> DenoisingScore:
    """Measure a masked language model. A model that detects replaced tokens has one as its generator."""
    data = parse_settings(loaded.config["data"], MaskedDataConfig, f"in the data section of {Path(model) / CONFIG}")
    tokenizer, masked_model = loaded.tokenizers.source, loaded.model.generator or loaded.model
    masker = Masker(data.masking, tokenizer, MASKING_SEED)
    text = HeldOutText(model, list(texts))
    result = MaskedTextValidator(text, tokenizer, masker, data.block, model=masked_model).run(runtime)
    noise = f"masks ({data.masking.rate:.0%} of the tokens)"
    return DenoisingScore(model, len(texts), noise, result["loss"].value, result["accuracy"].value)
