"""`LanguageModel`, the Python interface to a language model, which continues and scores text."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import torch

from dragoman.base.errors import ConfigError, DataError, ModelError, ResourceError
from dragoman.base.machine.device import choose_device
from dragoman.base.machine.memory import is_out_of_memory
from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.decode.sampling import SamplingConfig
from dragoman.generation.score import WholeScorer, WindowScorer
from dragoman.generation.writer import MAX_TOKENS, GenerationRequest, GenerationSettings, Piece, Writer
from dragoman.inspect.attention import AttentionMap, attention_maps, without_weights
from dragoman.inspect.inspection import Inspection, build_inspection, check_not_blank, check_token_count
from dragoman.metrics.text_score import TextScore
from dragoman.models.interface import CausalModel
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers

__all__ = ["GenerationRequest", "LanguageModel", "TextScore"]

_USUAL_WINDOW = 1024


class LanguageModel:
    """A trained model that continues text. Its outputs depend neither on the batch size nor on other prompts."""

    def __init__(
        self,
        model: CausalModel,
        tokenizer: Tokenizer,
        meta: Meta | None = None,
        block: int | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> None:
        """model: it is put into evaluation mode and runs on the device of its parameters.

        block: length in tokens of its training excerpts; None if unknown. search: the model's own sampling settings
        that differ from the defaults.
        """
        self.model, self.tokenizer = model.eval(), tokenizer
        self.meta = meta or Meta(step=0)
        positions = [limit.positions for limit in model.limits]
        known = [size for size in (block, *positions) if size is not None]
        self.window = None if model.unbounded else min(known, default=_USUAL_WINDOW)
        """Maximum number of tokens of context: `data.block` of its training, or its positions if they are fewer.

        None: unlimited, for a recurrent model that carries its state along.
        """
        self._search = dict(search or {})

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None, verb: str = "generate") -> "LanguageModel":
        """Read a model folder.

        device: cpu, cuda or cuda:N (default: a GPU if there is one). verb: the purpose, generate or score. Raises
        ModelError for a path that is not a model folder, a damaged one, and one whose kind of model does not serve the
        verb; ConfigError for an unknown device.
        """
        keep_large_tensors_on_heap()
        return cls.of(load_model_folder(Path(folder), choose_device(device or "auto"), verb))

    @classmethod
    def of(cls, loaded: LoadedModel) -> "LanguageModel":
        """Wrap a model in memory. Raises ModelError if its settings are damaged."""
        data = loaded.config.get("data")
        block = data.get("block") if isinstance(data, Mapping) else None
        if block is not None and (not isinstance(block, int) or block < 1):
            raise ModelError(f"data.block of the model's config.yaml is {block!r}, not a number of tokens: restore it")
        return cls(loaded.model, loaded.tokenizers.target, loaded.meta, block, loaded.config.get("search"))

    @property
    def device(self) -> torch.device:
        """The device of its parameters."""
        return next(self.model.parameters()).device

    def request(
        self,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        seed: int = 1,
        samples: int = 1,
        max_tokens: int = MAX_TOKENS,
    ) -> GenerationRequest:
        """Build a request, with the model's own settings as defaults; values are as in `GenerationRequest`.

        top_k=1 is greedy search. Raises ConfigError for an invalid value.
        """
        if isinstance(stop, str):
            raise TypeError("stop must be a list of strings, not one string")
        given = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        settings = {**self._search, **{name: value for name, value in given.items() if value is not None}}
        config = parse_settings(settings, SamplingConfig, "search")
        never = tuple(self.tokenizer.tag_ids(self.tokenizer.tags))
        config = config.model_copy(update={"forbid": (*config.forbid, *never)})
        most = max_tokens if config.maximum_length is None else min(max_tokens, config.maximum_length)
        return GenerationRequest(config, tuple(stop), seed, samples, most)

    def generate(
        self,
        prompts: Sequence[str],
        request: GenerationRequest | None = None,
        *,
        batch_size: int = 32,
        first: int = 1,
        **settings: Unpack[GenerationSettings],
    ) -> list[str]:
        """Return the continuation of each prompt, without the prompt itself; an empty prompt begins a new text.

        All samples of the first prompt come first. request: as returned by `request`; alternatively, settings are the
        arguments of `request`. batch_size: samples generated at once; apart from rounding, it affects only the speed.
        first: number of the first prompt; the seed and a prompt's number determine its random numbers.
        """
        if isinstance(prompts, str):
            raise TypeError("prompts must be a list of strings, not one string")
        if batch_size < 1:
            raise ConfigError(f"the batch size must be at least 1 sample, not {batch_size}")
        wanted = self._wanted(request, settings)
        together = max(1, batch_size // wanted.samples)
        numbered = list(enumerate(prompts, start=first))
        texts: list[str] = []
        for start in range(0, len(numbered), together):
            some = numbered[start : start + together]
            written = [""] * (len(some) * wanted.samples)
            for piece in self._write(some, wanted):
                written[piece.row] += piece.text
            texts += written
        return texts

    def stream(
        self, prompt: str, request: GenerationRequest | None = None, **settings: Unpack[GenerationSettings]
    ) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces of whole characters, which join to `generate`'s text.

        Raises ConfigError for several samples.
        """
        wanted = self._wanted(request, settings)
        if wanted.samples > 1:
            raise ConfigError(f"{wanted.samples} samples cannot be streamed: request one, or use generate")
        return (piece.text for piece in self._write([(1, prompt)], wanted))

    def score(self, texts: Sequence[str], stride: int | None = None, batch_size: int = 16) -> list[TextScore]:
        """Return the log-probability of each text, including its end, in order.

        A text that is longer than the window is read in overlapping windows, each of which predicts only tokens that no
        earlier window has predicted. stride: number of tokens that each window after the first predicts, from 1 to the
        window (default: half of it). A smaller stride gives each token more context, at least `window` − `stride`
        tokens, and takes longer. With `stride` = `window`, windows do not overlap, as in validation. A recurrent model
        has no window: it reads each text from beginning to end. batch_size: number of windows, or texts, read together.
        Raises ConfigError for an invalid stride, or a stride for a model without a window, DataError for invalid
        Unicode.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string")
        if batch_size < 1:
            raise ConfigError(f"the batch size must be at least 1 window, not {batch_size}")
        scorer = self._scorer(stride)
        ids = self.tokenizer.encode_batch(texts)
        with _memory_errors():
            found = scorer.log_probabilities(ids, batch_size)
        return [TextScore.of(*each) for each in zip(texts, ids, found, strict=True)]

    def attention(self, text: str) -> list[AttentionMap]:
        """Return the attention weights of every layer and head for the prediction of `text` and its end.

        Raises DataError for a text that is longer than the window.
        """
        ids = self.tokenizer.encode(text)
        if self.window is not None and len(ids) >= self.window:
            raise DataError(f"the text has {len(ids)} tokens, but the window holds {self.window - 1}: shorten it")
        return attention_maps(self.model, Tokenizers(self.tokenizer, self.tokenizer), ids)

    def inspect(self, text: str) -> Inspection:
        """Return all attention weights for the prediction of `text` and its end, to view and save.

        Raises ConfigError for a model without attention, DataError for a text that is blank or too long.
        """
        check_not_blank(text, "text")
        check_token_count(len(self.tokenizer.encode(text)))
        return build_inspection(None, text, self.attention(text), without_weights(self.model))

    def _write(self, prompts: Sequence[tuple[int, str]], request: GenerationRequest) -> Iterator[Piece]:
        writer = Writer(self.model.decoder, self.tokenizer, self.window, self.device)
        with _memory_errors():
            yield from writer.write(prompts, request)

    def _scorer(self, stride: int | None) -> WindowScorer | WholeScorer:
        if self.window is not None:
            step = max(1, self.window // 2) if stride is None else stride
            return WindowScorer(self.model.decoder, self.device, self.window, step)
        if stride is not None:
            raise ConfigError("a recurrent model reads a text as a whole, without windows: leave out the stride")
        return WholeScorer(self.model.decoder, self.device)

    def _wanted(self, request: GenerationRequest | None, settings: GenerationSettings) -> GenerationRequest:
        if request is None:
            return self.request(**settings)
        if settings:
            raise ConfigError(f"a request contains all settings: leave out {', '.join(settings)}, or the request")
        return request


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Convert out-of-memory errors to ResourceError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise ResourceError("the texts do not fit into memory together: use a smaller batch size") from error
