"""`Subject`: a text and the output of a model for it, whose computation is analysed."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.errors import ConfigError, DataError, LineError, reject_options
from dragoman.data.batches.batch import pad
from dragoman.decode.search import Hypothesis
from dragoman.generation.language_model import LanguageModel
from dragoman.inspect.attention import END
from dragoman.inspect.inspection import check_not_blank, check_token_count
from dragoman.models.interface import Output
from dragoman.prediction.engine import EncoderEngine
from dragoman.prediction.input_words import texts_of
from dragoman.prediction.inspection import explained_output
from dragoman.prediction.predictor import Predictor, Text
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.engines.preferred import PreferredEngine
from dragoman.translation.engines.torch import TorchEngine
from dragoman.translation.request import Request
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator

Loaded = Translator | LanguageModel | Predictor
"""A model that was loaded from a folder."""


@dataclass(frozen=True)
class SubjectSettings:
    """The choices that complete a text. All are optional.

    target: the translation to analyse, or its token ids without special symbols; None for the model's own. to, tags: as
    in `Translator.request`. word, mask: as in `Predictor.inspect`.
    """

    target: str | tuple[int, ...] | None = None
    to: str | None = None
    tags: tuple[str, ...] = ()
    word: int | None = None
    mask: int | None = None


@dataclass(frozen=True)
class Subject:
    """A text, and the output of a model for it.

    model: a module in evaluation mode. arguments: its inputs for the text, one row each. output: describes the output,
    such as "log-probability of the translation". terms: the labels of the N terms whose sum is the output: the
    predicted tokens and the end symbol, or a single label. select: returns the terms (N,) of what the model returns,
    differentiable. source, target: the text, and the text or label that is predicted; source is None for a language
    model. source_ids, target_ids: the tokens of a model with a decoder, without special symbols except tags.
    """

    model: nn.Module
    arguments: tuple[Tensor, ...]
    output: str
    terms: tuple[str, ...]
    select: Callable[[Any], Tensor]
    source: str | None
    target: str
    source_ids: Sequence[Any] = ()
    target_ids: tuple[int, ...] = ()

    def values(self) -> NDArray[np.float64]:
        """Return the terms (N,) of the output."""
        with torch.inference_mode():
            return self.select(self.model(*self.arguments)).double().cpu().numpy()


def subject_of(loaded: Loaded, text: Text, settings: SubjectSettings | None = None) -> Subject:
    """Return the output of a model for a text.

    It is the log-probability of the translation of a text, of the text itself for a language model, and of the
    predicted label for a model with a head, or the number that such a model predicts.

    Raises ConfigError for a setting that the model does not have, and for a model or an engine whose computation is not
    visible; DataError for a text that is blank or too long, and the errors of `Predictor.inspect`.
    """
    settings = settings or SubjectSettings()
    given = {"--target": settings.target, "--to": settings.to, "--tags": settings.tags or None}
    labelled = {"--word": settings.word, "--mask": settings.mask}
    if isinstance(loaded, Predictor):
        reject_options(given, "with a translation model")
        return _label_subject(loaded, text, settings)
    reject_options(labelled, "with a model that predicts labels")
    if not isinstance(text, str):
        raise ConfigError("this model reads one text, not a pair of texts: pass a string")
    if isinstance(loaded, LanguageModel):
        reject_options(given, "with a translation model")
        check_not_blank(text, "text")
        return text_subject(loaded, loaded.tokenizer.encode(text))
    if isinstance(loaded, Translator):
        request = loaded.request(to=settings.to, tags=settings.tags)
        return translation_subject(loaded, text, settings.target, request)
    raise ConfigError(
        "this model cannot be analysed: load a translation model, a language model or a model that "
        "predicts labels of texts"
    )


def visible_engine(translator: Translator) -> TorchEngine:
    """Return the engine that computes with PyTorch, whose computation is visible.

    Raises ConfigError for a translator without such an engine.
    """
    engine = translator.engine
    if isinstance(engine, PreferredEngine):
        engine = engine.reference
    if not isinstance(engine, TorchEngine):
        raise ConfigError(
            "the computation of this engine is not visible: load a model folder with --engine torch or auto; exported "
            "and statistical models cannot be analysed"
        )
    return engine


def visible_model(loaded: Loaded) -> Any:
    """Return the module whose computation is visible. Raises ConfigError as `visible_engine` does."""
    return visible_engine(loaded).model if isinstance(loaded, Translator) else loaded.model


def visible_predictor(predictor: Predictor) -> Predictor:
    """Return the predictor with the engine that computes with PyTorch, whose computation is visible."""
    if predictor.engine.name == "torch":
        return predictor
    visible = copy(predictor)
    visible.engine = EncoderEngine("torch", "float32", predictor.model)
    return visible


def best_hypothesis(translator: Translator, source: str, request: Request) -> Hypothesis:
    """Return the best translation of a text by the visible engine.

    Raises DataError for a text that is blank or too long.
    """
    check_not_blank(source, "text")
    try:
        rows = translator.codec.encode_rows([(source, request)], [1])
        translator.codec.check_length(1, rows[0].source, rows[0].prefix.ids)
    except LineError as error:
        raise DataError(f"the text is too long: {error.reason}") from None
    ((_, hypotheses),) = visible_engine(translator).hypotheses(rows, 1)
    return hypotheses[0]


def best_translation(translator: Translator, source: str, request: Request) -> Translation:
    """Return the text of `best_hypothesis`."""
    return translator.codec.decode(best_hypothesis(translator, source, request))


def translation_subject(
    translator: Translator, source: str, target: str | Sequence[int] | None, request: Request
) -> Subject:
    """Return the log-probability of a translation.

    target: a text, its token ids, or None for the best translation. request: the tags of the source, and the search for
    the best translation. Raises DataError for a text that is blank or too long, and ConfigError as `visible_engine`.
    """
    engine = visible_engine(translator)
    check_not_blank(source, "text")
    given = target if isinstance(target, str) else ""
    if isinstance(target, str):
        check_not_blank(target, "target")
    try:
        (pair,) = translator.codec.encode_pairs([source], [given], request.tags)
        check_token_count(len(pair.source))
        if target is None:
            target = best_hypothesis(translator, source, request).tokens
        ids = tuple(pair.target) if isinstance(target, str) else tuple(target)
        translator.codec.check_length(1, pair.source, ids)
    except LineError as error:
        raise DataError(f"the text is too long: {error.reason}") from None
    inputs = tuple(each.to(engine.device) for each in pad([pair.source], after=(EOS,)))
    tokenizer = translator.tokenizers.target
    text = target if isinstance(target, str) else tokenizer.decode(ids)
    output = "log-probability of the translation"
    return _target_subject(engine.model, inputs, ids, tokenizer, output, source, text, pair.source)


def text_subject(language_model: LanguageModel, ids: Sequence[int]) -> Subject:
    """Return the log-probability of a text by a language model. Raises DataError for too many tokens."""
    if language_model.window is not None and len(ids) >= language_model.window:
        held = language_model.window - 1
        raise DataError(f"the text has {len(ids)} tokens, but the window holds {held}: shorten it")
    tokenizer = language_model.tokenizer
    text, output = tokenizer.decode(ids), "log-probability of the text"
    return _target_subject(language_model.model, (), tuple(ids), tokenizer, output, None, text, ())


def _target_subject(
    model: Any,
    inputs: tuple[Tensor, ...],
    ids: tuple[int, ...],
    tokenizer: Tokenizer,
    output: str,
    source: str | None,
    target: str,
    source_ids: Sequence[Any],
) -> Subject:
    """Return the log-probability of a target by a model with a decoder. inputs: those of the encoder, one row."""
    check_token_count(len(ids))
    device = next(model.parameters()).device
    read = torch.tensor([[BOS, *ids]], device=device)
    labels = torch.tensor([*ids, EOS], device=device)

    def select(outputs: Output) -> Tensor:
        log_probabilities = outputs.logits()[0].log_softmax(-1)  # (T + 1, V)
        return log_probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)

    terms = (*tokenizer.pieces(ids), END)
    return Subject(model, (*inputs, read), output, terms, select, source, target, source_ids, ids)


def _label_subject(predictor: Predictor, text: Text, settings: SubjectSettings) -> Subject:
    predictor = visible_predictor(predictor)
    encoded = predictor.encode([text])
    (prediction,) = predictor.predict_encoded(encoded)
    output = explained_output(
        predictor.tokenizer,
        predictor.labels,
        encoded[0].example,
        encoded[0].inputs,
        prediction,
        settings.word,
        settings.mask,
    )
    check_token_count(len(output.row.ids))
    tokens = torch.tensor([output.row.ids], device=predictor.device)
    arguments = (tokens, torch.ones_like(tokens, dtype=torch.bool))
    described = output.measure if output.competing is None else f"log-probability of {output.name}"
    return Subject(
        predictor.model,
        arguments,
        described,
        (output.label,),
        lambda outputs: output.log_probability(outputs).reshape(1),
        " / ".join(texts_of(encoded[0].example)),
        output.label,
    )
