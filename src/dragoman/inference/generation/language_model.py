"""`LanguageModel`, the Python interface to a language model, which continues and scores text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import torch

from dragoman.base.errors import ConfigError, ModelError, reject_options
from dragoman.base.machine.device import choose_device
from dragoman.base.machine.memory import smaller_batch_advice
from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.decode.sampling import GenerationConfig
from dragoman.engines.choice import EngineChoice, ModelEngine, model_engine
from dragoman.inference.generation.score import WholeScorer, WindowScorer, scored_tokens
from dragoman.inference.generation.subject import TextSequence, text_subject
from dragoman.inference.generation.writer import (
    MAX_TOKENS,
    GenerationRequest,
    GenerationSettings,
    Piece,
    Prompt,
    ScoredToken,
    Writer,
)
from dragoman.inference.process_bound import ProcessBound
from dragoman.inference.subject import NO_SETTINGS, Subject, SubjectSettings, check_not_blank, check_one_text
from dragoman.metrics.text_score import TextScore
from dragoman.models.interface import CausalModel
from dragoman.models.kinds.registry import LANGUAGE_MODEL, ModelKind
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unknown_tokens import UnknownTokenWarning

__all__ = ["GenerationRequest", "LanguageModel", "TextScore"]

_DEFAULT_WINDOW = 1024


class LanguageModel(ProcessBound):
    """A trained model that generates and scores text. Outputs do not depend on the batch size or on other prompts.

    >>> from dragoman import LanguageModel
    >>> model = LanguageModel.load("runs/lm")
    >>> model.generate(["The old"], max_tokens=5, seed=1)
    ['...']
    >>> model.score(["The dog sleeps."])[0].log_probability < 0
    True
    """

    kind: ModelKind = LANGUAGE_MODEL
    """The record of the kind of model."""

    def __init__(
        self,
        model: CausalModel,
        tokenizer: Tokenizer,
        meta: Meta | None = None,
        block: int | None = None,
        search: Mapping[str, Any] | None = None,
        *,
        engine: str | ModelEngine = "torch",
    ) -> None:
        """model: the model, which is set to evaluation mode and runs on the device of its parameters.

        block: maximum length of the model's training blocks in tokens; None if unknown. search: the model's sampling
        settings, if they differ from the general defaults. engine: as in `load`, or an engine of this model.
        """
        self.model, self.tokenizer = model.eval(), tokenizer
        self.meta = meta or Meta(step=0)
        self._unknown = UnknownTokenWarning(tokenizer)
        positions = [limit.positions for limit in model.limits]
        sizes = [size for size in (block, *positions) if size is not None]
        self.window = None if model.unbounded else min(sizes, default=_DEFAULT_WINDOW)
        """Maximum number of tokens of context: the smaller of `data.block` in training and the number of positions.

        None: unlimited, for a recurrent model.
        """
        self._search = dict(search or {})
        self.engine = engine if isinstance(engine, ModelEngine) else _engine(model, engine)
        """The engine that computes the probabilities of tokens."""

    @classmethod
    def load(
        cls, folder: str | Path, device: str | None = None, ability: str = "generate", *, engine: str = "auto"
    ) -> "LanguageModel":
        """Read a model folder.

        device: cpu, cuda or cuda:N (default: a GPU if there is one). ability: the intended use, generate or score.
        engine: auto, or the name of an engine in `engines.registry.ENGINES` that serves language models, such as torch.
        Raises ModelError if the path is not a model folder, if the folder is damaged, and if its kind of model lacks
        the ability; ConfigError for an unknown device or engine.
        """
        keep_large_tensors_on_heap()
        return cls.of(load_model_folder(Path(folder), choose_device(device or "auto"), ability), engine)

    @classmethod
    def of(cls, loaded: LoadedModel, engine: str = "torch") -> "LanguageModel":
        """Return a language model from the contents of a model folder. engine: as in `load`.

        Raises ModelError for damaged settings.
        """
        data = loaded.config.get("data")
        block = data.get("block") if isinstance(data, Mapping) else None
        if block is not None and (not isinstance(block, int) or block < 1):
            raise ModelError(f"data.block in the model's config.yaml is {block!r}, not a number of tokens: correct it")
        search = loaded.config.get("search")
        found = cls(loaded.model, loaded.tokenizers.target, loaded.meta, block, search, engine=engine)
        found.kind = loaded.kind or cls.kind
        return found

    @property
    def device(self) -> torch.device:
        """The device of the model's parameters."""
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
        """Build a request, with the model's settings as defaults. The arguments are as in `GenerationRequest`.

        temperature=0 selects greedy search. Raises ConfigError for an invalid value.
        """
        if isinstance(stop, str):
            raise TypeError("stop must be a list of strings, not one string")
        arguments = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        settings = {**self._search, **{name: value for name, value in arguments.items() if value is not None}}
        config = parse_settings(settings, GenerationConfig, "search")
        tag_ids = tuple(self.tokenizer.tag_ids(self.tokenizer.tags))
        config = config.model_copy(update={"forbid": (*config.forbid, *tag_ids)})
        if config.maximum_length is not None:
            max_tokens = min(max_tokens, config.maximum_length)
        return GenerationRequest(config, tuple(stop), seed, samples, max_tokens)

    def generate(
        self,
        prompts: Sequence[str],
        request: GenerationRequest | None = None,
        *,
        batch_size: int = 32,
        first: int = 1,
        **settings: Unpack[GenerationSettings],
    ) -> list[str]:
        """Return the continuation of each prompt, without the prompt. An empty prompt starts a new text.

        The samples are ordered by prompt. request: a request built by `request`. batch_size: number of samples that are
        generated at once; apart from rounding, it affects only the speed. first: number of the first prompt; the seed
        and the number of a prompt determine its random numbers. settings: the arguments of `request`, as an
        alternative to `request`.
        """
        if isinstance(prompts, str):
            raise TypeError("prompts must be a list of strings, not one string")
        if batch_size < 1:
            raise ConfigError(f"the batch size must be at least 1 sample, not {batch_size}")
        request = self._resolve_request(request, settings)
        batch_prompts = max(1, batch_size // request.samples)
        numbered = list(enumerate(prompts, start=first))
        texts: list[str] = []
        for start in range(0, len(numbered), batch_prompts):
            batch = numbered[start : start + batch_prompts]
            batch_texts = [""] * (len(batch) * request.samples)
            for piece in self._write(batch, request):
                batch_texts[piece.row] += piece.text
            texts += batch_texts
        return texts

    def stream(
        self, prompt: str, request: GenerationRequest | None = None, **settings: Unpack[GenerationSettings]
    ) -> Iterator[str]:
        """Yield the continuation of one prompt in pieces of whole characters.

        The concatenated pieces equal the text that `generate` returns. Raises ConfigError for several samples.
        """
        request = self._resolve_request(request, settings)
        if request.samples > 1:
            raise ConfigError(f"{request.samples} samples cannot be streamed: request one, or use generate")
        return (piece.text for piece in self._write([(1, prompt)], request) if piece.text)

    def pieces(
        self, prompts: Sequence[Prompt], request: GenerationRequest | None = None, *, best: int = 0
    ) -> Iterator[Piece]:
        """Yield a piece per token of the continuations of all prompts, which are generated together.

        Each piece has its text, its token with the log-probability, the number of its sample (that of sample j of
        prompt i is i · samples + j), and in the last piece of a sample the reason why it ended. prompts: texts, or
        token ids. request: a request built by `request`. best: number of most probable tokens per position. Raises
        ConfigError for a token that is not in the vocabulary.
        """
        for prompt in prompts:
            self._check_ids(prompt)
        return self._write(list(enumerate(prompts, 1)), self._resolve_request(request, {}), best)

    def token_scores(self, ids: Sequence[int], *, best: int = 0) -> list[ScoredToken]:
        """Return the log-probability of each token of a text given the preceding ones. best: as in `pieces`.

        Raises ConfigError for a token that is not in the vocabulary and for more tokens than the window holds.
        """
        self._check_ids(ids)
        if self.window is not None and len(ids) > self.window:
            raise ConfigError(f"the text has {len(ids)} tokens, but the window holds {self.window}: shorten it")
        with smaller_batch_advice():
            return scored_tokens(self.engine.model.decoder, self.device, ids, best)

    def _check_ids(self, prompt: Prompt) -> None:
        size = self.tokenizer.size
        if not isinstance(prompt, str) and (unknown := [each for each in prompt if not 0 <= each < size]):
            raise ConfigError(f"there is no token {unknown[0]}: the vocabulary has {size} tokens, numbered from 0")

    def score(self, texts: Sequence[str], *, stride: int | None = None, batch_size: int = 16) -> list[TextScore]:
        """Return the log-probability of each text, including its end symbol, in order.

        A text that is longer than the window is read in overlapping windows. Each window predicts only the tokens that
        earlier windows have not predicted. A recurrent model has no window and reads each text from beginning to end.

        stride: number of tokens that each window after the first predicts, from 1 to the size of the window (default:
        half the window). With a smaller stride, each token has more context, at least `window` − `stride` tokens, and
        scoring takes longer. With `stride` = `window`, windows do not overlap, as in validation. batch_size: number of
        windows that are read together, or number of texts for a recurrent model. Raises ConfigError for an invalid
        stride and for a stride with a recurrent model, DataError for invalid Unicode.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string")
        if batch_size < 1:
            raise ConfigError(f"the batch size must be at least 1 window, not {batch_size}")
        scorer = self._scorer(stride)
        ids = self.tokenizer.encode_batch(texts)
        self._unknown.note(ids)
        with smaller_batch_advice():
            log_probabilities = scorer.log_probabilities(ids, batch_size)
        return [TextScore.of(text, each, *sums) for text, each, sums in zip(texts, ids, log_probabilities, strict=True)]

    def subject(self, text: str, settings: SubjectSettings = NO_SETTINGS) -> Subject:
        """Return the log-probability of a text with its computation: `dragoman.inspect` and others look at it.

        Raises ConfigError for settings of other models, DataError for a text that is blank or too long.
        """
        self._reject(settings)
        check_not_blank(check_one_text(text), "text")
        return text_subject(self.model, self.tokenizer, self.window, self.tokenizer.encode(text))

    def sequence(self, text: str, settings: SubjectSettings = NO_SETTINGS) -> TextSequence:
        """Return a text and its continuation as a sequence of tokens. Raises ConfigError as `subject` does."""
        self._reject(settings)
        forbidden = tuple(self.request().sampling.forbid)
        return TextSequence(self.model, self.tokenizer, check_one_text(text), self.window, forbidden)

    def _reject(self, settings: SubjectSettings) -> None:
        given = {"--target": settings.target, "--to": settings.to, "--tags": settings.tags}
        reject_options(given, "with a translation model")
        reject_options({"--word": settings.word, "--mask": settings.mask}, "with a model that predicts labels")

    def _write(
        self, prompts: Sequence[tuple[int, Prompt]], request: GenerationRequest, best: int = 0
    ) -> Iterator[Piece]:
        writer = Writer(self.engine.model.decoder, self.tokenizer, self.window, self.device)
        with smaller_batch_advice():
            yield from writer.write(prompts, request, best)

    def _scorer(self, stride: int | None) -> WindowScorer | WholeScorer:
        if self.window is not None:
            step = max(1, self.window // 2) if stride is None else stride
            return WindowScorer(self.engine.model.decoder, self.device, self.window, step)
        if stride is not None:
            raise ConfigError("a recurrent model reads a text as a whole, without windows: leave out the stride")
        return WholeScorer(self.engine.model.decoder, self.device)

    def _resolve_request(self, request: GenerationRequest | None, settings: GenerationSettings) -> GenerationRequest:
        """Return `request`, or build a request from `settings`. Raises ConfigError if both are given."""
        if request is None:
            return self.request(**settings)
        if settings:
            raise ConfigError(f"a request contains all settings: leave out {', '.join(settings)}, or the request")
        return request


def _engine(model: CausalModel, name: str) -> ModelEngine:
    return model_engine("generate", model, EngineChoice(name=name))
