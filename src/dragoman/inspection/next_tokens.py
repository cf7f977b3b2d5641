"""`next_tokens` and `continue_prefix`: the tokens after a prefix of an output, and the best output with this prefix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError, reject_options
from dragoman.decode.decoding import Decoding
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.engines.engine import Prefix
from dragoman.figures.bars import Bars
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.prediction.heads.trees import generate_trees
from dragoman.inference.prediction.predictor import Predictor, Text
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Translator
from dragoman.inspection.subject import (
    Loaded,
    Subject,
    SubjectSettings,
    search_engine,
    subject_of,
    text_subject,
    translation_subject,
    tree_subject,
)
from dragoman.models.attention_weights import END, START
from dragoman.models.heads.chart import ChartHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig
from dragoman.text.symbols import BOS, EOS, PAD, UNK

DEFAULT_COUNT = 10
"""Number of tokens that are listed by default."""

MAX_NEW_TOKENS = 64
"""Maximum number of tokens that a language model adds to a prefix."""


@dataclass(frozen=True)
class NextTokens:
    """The probabilities of the tokens that may follow a prefix.

    prefix: the tokens of the prefix. ids, tokens, probabilities: the k most probable tokens, most probable first; the
    end symbol is `</s>`. rest: the probability of all other tokens together. entropy: of the whole distribution, in
    nats. actual: the token that follows in the analysed output, or the end symbol; None if only a prefix is known.
    actual_probability: its probability.
    """

    prefix: tuple[str, ...]
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    probabilities: NDArray[np.float64]
    rest: float
    entropy: float
    actual: str | None = None
    actual_probability: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {
            "prefix": list(self.prefix),
            "ids": list(self.ids),
            "tokens": list(self.tokens),
            "probabilities": self.probabilities.tolist(),
            "rest": self.rest,
            "entropy": self.entropy,
            "actual": self.actual,
            "actual_probability": self.actual_probability,
        }

    def figure(self) -> Bars:
        """Return the probabilities as bars. The token that follows is emphasised, if it is among them."""
        return Bars(
            title=f"Next token after {' '.join(self.prefix) or START}",
            caption="The most probable tokens after the prefix, and the probability of all others together.",
            slide="deck 004, decoding",
            labels=self.tokens,
            values=tuple(self.probabilities.tolist()),
            rest=self.rest,
            marked=tuple(number for number, token in enumerate(self.tokens) if token == self.actual),
        )


def next_tokens(
    loaded: Loaded,
    text: str,
    prefix: str | Sequence[int] = "",
    settings: SubjectSettings | None = None,
    count: int = DEFAULT_COUNT,
) -> NextTokens:
    """Return the most probable tokens after a prefix of the translation or of a text.

    text: the source; for a language model, the beginning of the text, which `prefix` follows. prefix: a text, or token
    ids without special symbols; for a parser that generates trees, symbols such as `(S (NP DT`, or their ids. count:
    number of tokens to list. Raises the errors of `subject_of`; ConfigError for a
    model without a decoder, a count below 1 and an invalid id; and DataError for a prefix that is too long.

    >>> from dragoman import Translator, next_tokens
    >>> found = next_tokens(Translator.load("runs/ende"), "The dog sleeps.", "Der", count=3)
    >>> found.tokens, found.probabilities.round(2)
    (('...', '...', '...'), array([...]))
    """
    ids, ended = _prefix_ids(loaded, text, prefix)
    if ended:
        raise ConfigError("the prefix ends with the end symbol, which no token follows: remove the end symbol")
    found = subject_next_tokens(_subject(loaded, text, ids, settings), count)[-1]
    return replace(found, actual=None, actual_probability=None)


def next_tokens_at_each_position(
    loaded: Loaded, text: str, settings: SubjectSettings | None = None, count: int = DEFAULT_COUNT
) -> tuple[NextTokens, ...]:
    """Return the most probable tokens at each position of an output and at its end, given the tokens before it.

    The output is the translation (by default the model's own), or the text itself for a language model. The errors are
    those of `next_tokens`.
    """
    check_generates(loaded)
    return subject_next_tokens(subject_of(loaded, text, settings), count)


def subject_next_tokens(subject: Subject, count: int = DEFAULT_COUNT) -> tuple[NextTokens, ...]:
    """Return the most probable tokens at each position of the output of a model with a decoder, and at its end.

    Raises ConfigError for a count below 1.
    """
    assert subject.decoding is not None, "the model has a decoder"
    with torch.inference_mode():
        logits = subject.decoding.logits(subject.model(*subject.arguments))  # (T + 1, V)
    return tuple(most_probable(logits, subject, count))


def continue_prefix(
    loaded: Loaded, text: str, prefix: str | Sequence[int] = "", settings: SubjectSettings | None = None
) -> Translation:
    """Return the best output that begins with a prefix, such as a translation in which one word was changed.

    A translation is found by the search of the model's settings. A language model continues by greedy search, with at
    most `MAX_NEW_TOKENS` tokens; the log-probability includes the prefix. text, prefix: as in `next_tokens`; a sequence
    of ids may end with the end symbol, and the output is then the prefix. Raises the errors of `next_tokens`, and
    ConfigError for an end symbol if the model's search settings have a coverage penalty or a language model.

    >>> from dragoman import Translator, continue_prefix
    >>> continue_prefix(Translator.load("runs/ende"), "The dog sleeps.", "Der").text
    'Der ...'
    """
    if isinstance(loaded, Predictor):
        check_generates(loaded)
        raise ConfigError("a parser continues trees: use `continue_tree`")
    ids, ended = _prefix_ids(loaded, text, prefix)
    subject = _subject(loaded, text, ids, settings)
    if isinstance(loaded, LanguageModel):
        return _continue_text(loaded, subject, ended)
    assert isinstance(loaded, Translator), "other models have been rejected"
    (row,) = loaded.codec.encode_rows([(text, _request(loaded, settings))], [1])
    tokenizer = loaded.tokenizers.target
    unknown = (f" {tokenizer.pieces((UNK,))[0]}",) * ids.count(UNK)
    if ended:
        return loaded.codec.decode(replace(_ended(subject, row.decoding), unknown=unknown))
    row = row._replace(prefix=Prefix(ids, unknown))
    ((_, hypotheses),) = search_engine(loaded).hypotheses([row], 1)
    return loaded.codec.decode(hypotheses[0])


def continue_tree(predictor: Predictor, sentence: Text, prefix: str | Sequence[int] = "") -> TreePrediction:
    """Return the best tree whose symbols begin with a prefix, by the search of a parser that generates trees.

    prefix: as in `next_tokens`. Raises the errors of `next_tokens`, and ConfigError for a prefix that no tree of the
    sentence has.
    """
    ids, ended = _prefix_ids(predictor, "", prefix)
    subject = tree_subject(predictor, sentence, ids)  # checks the sentence and the prefix
    (encoded,) = predictor.encode([sentence])
    with torch.inference_mode():
        output = subject.model(*subject.arguments)
        prediction = predictor.read_outputs(encoded, generate_trees(output, encoded.inputs, [ids]))
    assert isinstance(prediction, TreePrediction), "the model parses"
    if ended or (_tree_decoder(predictor).constrained and prediction.repairs):
        raise ConfigError(f"no tree of this sentence begins with {subject.target}: change the prefix")
    return prediction


def check_generates(loaded: Loaded) -> None:
    """Raise ConfigError for a model that does not generate its output token by token."""
    if isinstance(loaded, Predictor) and isinstance(loaded.head, ChartHeadConfig):
        raise ConfigError(
            "a chart parser scores all spans at once instead of generating symbols one after another; "
            "`dragoman inspect heads` shows the scores of the spans, and `dragoman inspect` the tree"
        )
    if isinstance(loaded, Predictor) and not isinstance(loaded.head, TreeDecoderHeadConfig):
        raise ConfigError(
            "a model that predicts labels generates no tokens one after another, so that no token follows a prefix; "
            "`dragoman predict` shows the probabilities of its labels"
        )


def _prefix_ids(loaded: Loaded, text: str, prefix: str | Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """Return the ids that the decoder reads, and whether the end symbol follows. Raises ConfigError for an invalid id.

    A language model reads the text before the prefix.
    """
    check_generates(loaded)
    if isinstance(prefix, str):
        return _parse_prefix(loaded, text, prefix), False
    ended = bool(prefix) and prefix[-1] == EOS
    ids, size = tuple(prefix[: len(prefix) - ended]), _target_size(loaded)
    if invalid := [each for each in ids if each in (PAD, BOS, EOS) or not 0 <= each < size]:
        raise ConfigError(
            f"the prefix contains the id {invalid[0]}, which is not that of a token: pass ids below {size}, "
            f"and the end symbol, {EOS}, only at the end"
        )
    return (*(loaded.tokenizer.encode(text) if isinstance(loaded, LanguageModel) else ()), *ids), ended


def _tree_decoder(predictor: Predictor) -> TreeDecoderHeadConfig:
    assert isinstance(predictor.head, TreeDecoderHeadConfig), "other models have been rejected"
    return predictor.head


def _parse_prefix(loaded: Loaded, text: str, prefix: str) -> tuple[int, ...]:
    if isinstance(loaded, Predictor):
        return tuple(_tree_decoder(loaded).symbols.parse(prefix))
    if isinstance(loaded, LanguageModel):
        return tuple(loaded.tokenizer.encode(text + prefix))
    return tuple(loaded.tokenizers.target.encode(prefix.rstrip()))


def _target_size(loaded: Loaded) -> int:
    if isinstance(loaded, Predictor):
        return _tree_decoder(loaded).symbols.size
    return loaded.tokenizer.size if isinstance(loaded, LanguageModel) else loaded.tokenizers.target.size


def _subject(loaded: Loaded, text: Text, ids: tuple[int, ...], settings: SubjectSettings | None) -> Subject:
    """Return the subject whose target is a prefix."""
    if settings is not None and settings.target is not None:
        raise ConfigError("a prefix takes the place of the target: leave out either")
    if not isinstance(loaded, Translator):
        reject_options({"--to": settings and settings.to, "--tags": settings and settings.tags}, "for translation")
    if isinstance(loaded, Predictor):
        return tree_subject(loaded, text, ids)
    if isinstance(loaded, LanguageModel):
        return text_subject(loaded, ids)
    assert isinstance(text, str), "a translator reads one text"
    return translation_subject(loaded, text, ids, _request(loaded, settings))


def _request(translator: Translator, settings: SubjectSettings | None) -> Request:
    settings = settings or SubjectSettings()
    return translator.request(to=settings.to, tags=settings.tags)


def most_probable(logits: Tensor, subject: Subject, count: int) -> list[NextTokens]:
    """Return the most probable tokens for logits (T + 1, V) at all positions of the target of a subject.

    Raises ConfigError for a count below 1.
    """
    assert subject.decoding is not None, "the model has a decoder"
    pieces = subject.decoding.pieces
    if count < 1:
        raise ConfigError(f"the number of tokens to list must be at least 1, not {count}")
    probabilities = logits.double().softmax(-1)
    best, ids = probabilities.topk(min(count, probabilities.size(1)))
    rests = probabilities.scatter(1, ids, 0.0).sum(1).tolist()
    entropies = torch.special.entr(probabilities).sum(1).tolist()
    return [
        NextTokens(
            subject.terms[:position],
            tuple(listed),
            tuple(END if each == EOS else pieces((each,))[0] for each in listed),
            best[position].cpu().numpy(),
            rests[position],
            entropies[position],
            subject.terms[position],
            float(probabilities[position, actual]),
        )
        for position, (listed, actual) in enumerate(zip(ids.tolist(), (*subject.target_ids, EOS), strict=True))
    ]


def _ended(subject: Subject, decoding: Decoding) -> Hypothesis:
    """Return the hypothesis that consists of the prefix and the end symbol, as the search would score it."""
    assert isinstance(decoding, SearchConfig), "the request is that of a search"
    if decoding.coverage_penalty or decoding.fusion is not None:
        raise ConfigError(
            "a prefix with its end symbol has no score with search.coverage_penalty or search.fusion, which depend on "
            "the search: leave out the end symbol"
        )
    total = float(subject.values().sum())
    score = total / decoding.length_penalty.divisor(len(subject.terms))
    return Hypothesis(subject.target_ids, total, score, True)


def _continue_text(language_model: LanguageModel, subject: Subject, ended: bool) -> Translation:
    """Return a text with its best continuation by greedy search. Its score is the log-probability."""
    ids, tokenizer = subject.target_ids, language_model.tokenizer
    if ended:
        total = float(subject.values().sum())
        return Translation(tokenizer.decode(ids), total, total, ids, tokenizer)
    window = MAX_NEW_TOKENS if language_model.window is None else language_model.window - len(ids) - 1
    decoder, limits = language_model.model.decoder, [max(1, min(MAX_NEW_TOKENS, window))]
    config = SearchConfig(beam=1, length_penalty=NoPenalty(), forbid=language_model.request().sampling.forbid)
    with torch.inference_mode():
        prompts = Prompts.after(decoder, [(BOS, *ids)], limits, language_model.device)
        ((best,),) = search(decoder, prompts, config)
    total = float(subject.values()[:-1].sum()) + best.log_probability
    tokens = (*ids, *best.tokens)
    return Translation(tokenizer.decode(tokens), total, total, tokens, tokenizer, best.finished)
