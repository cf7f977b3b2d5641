"""`Predictor`, the Python interface to a model with a head, which predicts labels of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError, ModelError, reject_options
from dragoman.base.log import warn
from dragoman.base.machine.device import choose_device
from dragoman.base.machine.memory import smaller_batch_advice
from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.data.labelled.examples import LabelledText, ParsedSentence, Question, TaggedSentence
from dragoman.engines.choice import EngineChoice, ModelEngine, model_engine
from dragoman.figures.inspection import Inspection
from dragoman.inference.prediction.document_inspection import inspect_document
from dragoman.inference.prediction.heads.classification import encode_documents, encode_texts
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.readers import FILLS, HeadReader, Prediction, reader_of
from dragoman.inference.prediction.heads.tagging import TagPrediction, tagged_sentence
from dragoman.inference.prediction.inspection import inspect_prediction
from dragoman.inference.prediction.outputs import TOKENS, compute_outputs, compute_vectors
from dragoman.inference.prediction.parts import choose_part, task_names
from dragoman.inference.prediction.pseudo_likelihood import pseudo_log_likelihoods
from dragoman.metrics.text_score import TextScore
from dragoman.models.architectures.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.none import NoHeadConfig
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.models.heads.union import HeadConfig
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unknown_tokens import UnknownTokenWarning
from dragoman.text.words import count_words

Text = str | Sequence[str] | Mapping[str, str] | LabelledText | TaggedSentence | ParsedSentence | Question
"""One input of a predictor: a text; a pair of texts, a question and its context, or the words of a sentence; the fields
`question` and `context` of a question; or an example.
"""
_Example = LabelledText | TaggedSentence | ParsedSentence | Question


@dataclass(frozen=True)
class EncodedText:
    """A text as an example of the model's task, and its inputs to the model."""

    text: Text
    example: Any
    inputs: Sequence[ModelInput]

    @property
    def tokens(self) -> int:
        """Number of tokens of all inputs."""
        return sum(len(each.ids) for each in self.inputs)

    @property
    def cut(self) -> int:
        """Number of tokens that no input contains."""
        return sum(each.cut for each in self.inputs)


class Predictor:
    """A trained model that predicts labels. Predictions do not depend on the batch size or on the other texts.

    >>> from dragoman import Predictor
    >>> predictor = Predictor.load("runs/labels")
    >>> prediction = predictor.predict(["The food was lovely and the staff was helpful."])[0]
    >>> prediction.label in predictor.labels
    True
    """

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: Tokenizer,
        head: HeadConfig,
        length: int | None = None,
        meta: Meta | None = None,
        fills: int = FILLS,
        body: EncoderOnly | None = None,
        engine: str | ModelEngine = "torch",
        precision: str | None = None,
    ) -> None:
        """model: the model, which is set to evaluation mode and runs on the device of its parameters.

        length: maximum number of tokens of an input in training; None: the model's number of positions. fills: number
        of tokens that a masked language model predicts for each masked position. body: the model whose states are the
        vectors of texts, if it is not `model`. engine, precision: as in `load`, or an engine of this model. A native
        engine does not follow later changes of the parameters. Raises ConfigError if `fills` is below 1, and the errors
        of `model_engine`.
        """
        if fills < 1:
            raise ConfigError(f"the number of tokens per <mask> must be at least 1, not {fills}")
        self.model, self.tokenizer, self.head = model.eval(), tokenizer, head
        self.device = next(model.parameters()).device
        """The device of the model's parameters."""
        self.engine = engine if isinstance(engine, ModelEngine) else _engine(model, engine, precision)
        """The engine that computes the states of texts."""
        self._body = self.engine.model
        if body is not None:
            assert isinstance(engine, str), "an engine computes either the states of the model or those of its body"
            self._body = _engine(body.eval(), engine, precision).model
        self.meta = meta or Meta(step=0)
        self._unknown = UnknownTokenWarning(tokenizer)
        limits = [limit for limit in (length, model.limit.positions) if limit is not None]
        self.limit = min(limits, default=None)
        """Maximum number of tokens of an input, with special symbols; None: unlimited."""
        self._reader = None
        if not isinstance(head, NoHeadConfig):
            self._reader = reader_of(head, tokenizer, self.limit, self.meta.threshold, fills, model.sentence_language)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str | None = None,
        fills: int = FILLS,
        *,
        task: str | None = None,
        engine: str = "auto",
        precision: str | None = None,
    ) -> "Predictor":
        """Read a model folder.

        device: cpu, cuda or cuda:N (default: a GPU if there is one). fills: as in the constructor. task: name of the
        task, if the model was trained on several. engine: native: compiled code for Transformers on the CPU; torch:
        PyTorch, for every model and device; auto: native if it supports the model and the device. precision: float32
        (default), or int8, which the native engine supports: it is faster, but changes some predictions.

        Raises ModelError if the path is not a model folder, or if the folder is damaged; ConfigError for an unknown
        device, an unknown task, and without `task` for a model with several tasks; and the errors of `model_engine`.
        """
        keep_large_tensors_on_heap()
        loaded = load_model_folder(Path(folder), choose_device(device or "auto"), "predict")
        return cls.of(loaded, fills, task, engine, precision)

    @classmethod
    def load_tasks(
        cls, folder: str | Path, device: str | None = None, *, engine: str = "auto", precision: str | None = None
    ) -> dict[str, "Predictor"]:
        """Read a model folder once, and return a predictor for each of its tasks by name; they share the body.

        The name of the only task of a model is empty. device, engine, precision: as in `load`. Raises the errors of
        `load`.
        """
        keep_large_tensors_on_heap()
        loaded = load_model_folder(Path(folder), choose_device(device or "auto"), "predict")
        names = task_names(loaded.config["model"])
        if not names:
            return {"": cls.of(loaded, engine=engine, precision=precision)}
        shared = _engine(loaded.model, engine, precision)
        return {name: cls.of(loaded, task=name, engine=shared.of_task(name)) for name in names}

    @classmethod
    def of(
        cls,
        loaded: LoadedModel,
        fills: int = FILLS,
        task: str | None = None,
        engine: str | ModelEngine = "torch",
        precision: str | None = None,
    ) -> "Predictor":
        """Return a predictor from the contents of a model folder. Raises the errors of `load`.

        If the model detects the tokens that its generator has replaced, the predictor fills masks and scores texts with
        the generator. The vectors of texts are those of the body.
        """
        config = parse_settings(loaded.config["model"], EncoderOnlyConfig, "the model section of config.yaml")
        part = choose_part(loaded, config, task)
        tokenizer = loaded.tokenizers.source
        return cls(part.model, tokenizer, part.head, part.length, part.meta, fills, part.body, engine, precision)

    @property
    def has_head(self) -> bool:
        """Whether the model has a head. A body without one, such as an imported BERT, has only vectors of texts."""
        return self._reader is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes; empty for a model without classes."""
        return getattr(self.head, "labels", None) or ()

    def predict(self, texts: str | Sequence[Text], *, batch_tokens: int = TOKENS, first: int = 1) -> list[Prediction]:
        """Return the prediction for each text, in order. A single string is one text.

        texts: for classification and regression, texts or pairs of texts; for tagging, texts, which are divided into
        words, or lists of words; for parsing, sentences whose words are separated by spaces, or lists of words; for
        question answering, pairs of a question and a context, or mappings with these keys. batch_tokens: maximum number
        of tokens that are computed at once; it affects only the speed. first: number of the first text in warnings.
        Raises ConfigError for a text of the wrong form, DataError for invalid Unicode.
        """
        if isinstance(texts, str):
            texts = [texts]
        if batch_tokens < 1:
            raise ConfigError(f"a batch must have at least 1 token, not {batch_tokens}")
        encoded = self.encode(texts, first=first)
        self._warn_of_cuts(encoded, first)
        return self.predict_encoded(encoded, batch_tokens=batch_tokens)

    def encode(self, texts: Sequence[Text], *, first: int = 1) -> list[EncodedText]:
        """Return the inputs of the model for each text, in order. The arguments and errors are those of `predict`."""
        reader = self._head_reader()
        examples = [self._example(text, number) for number, text in enumerate(texts, first)]
        self._check_pairs(examples, first)
        inputs = reader.encode(examples)
        self._unknown.note(each.ids for one in inputs for each in one)
        return [EncodedText(*each) for each in zip(texts, examples, inputs, strict=True)]

    def predict_encoded(self, encoded: Sequence[EncodedText], *, batch_tokens: int = TOKENS) -> list[Prediction]:
        """Return the prediction for each text that `encode` returned, in order."""
        with smaller_batch_advice():
            flat = [each for one in encoded for each in one.inputs]
            outputs = iter(compute_outputs(self.engine.model, flat, self.device, batch_tokens))
        return [self.read_outputs(one, [next(outputs) for _ in one.inputs]) for one in encoded]

    def read_outputs(self, encoded: EncodedText, outputs: Sequence[Any]) -> Prediction:
        """Return the prediction for a text. outputs: those of `compute_outputs` for each of its inputs."""
        prediction = self._head_reader().predict(encoded.example, encoded.inputs, outputs)
        return self._restore_text(encoded.text, prediction)

    def score(self, texts: Sequence[str], *, batch_tokens: int = TOKENS) -> list[TextScore]:
        """Return the pseudo-log-likelihood of each text, in order. Only masked language models can score texts.

        Each token is masked in turn and predicted from all others (Salazar et al. 2020). The end of a text is not
        predicted. batch_tokens: as in `predict`. Raises ModelError for another head, DataError for invalid Unicode.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string")
        if not isinstance(self.head, MaskedLanguageModelHeadConfig):
            raise ModelError(
                f"the model has a head of kind {self.head.kind}; it cannot score texts: use a model that was trained "
                "with task.kind=masked_language_model"
            )
        ids = self.tokenizer.encode_batch(texts)
        self._unknown.note(ids)
        with smaller_batch_advice():
            sums = pseudo_log_likelihoods(self.engine.model, self.tokenizer, ids, self.limit, batch_tokens)
        return [
            TextScore(each, len(tokens), count_words(text), len(text.encode()), tokens.count(UNK))
            for text, tokens, each in zip(texts, ids, sums, strict=True)
        ]

    def inspect(self, text: Text, *, word: int | None = None, mask: int | None = None) -> Inspection:
        """Return the attention weights for a text, and the relevance of each of its words for the predicted label.

        The relevance is gradient × input, and erasure (see `Relevance`). A hierarchical encoder has the weights of
        sentences and words instead. word: for a tagger, the number of the word,
        counted from 1, whose tag is explained (default: the first word of the first span). mask: for a masked language
        model, the number of the `<mask>` whose most probable token is explained (default: 1). Raises the errors of
        `predict` and of `inspect_prediction`.
        """
        encoded = self.encode([text])
        (prediction,) = self.predict_encoded(encoded)
        if self.model.sentence_language is not None:
            reject_options({"--word": word, "--mask": mask}, "with a model of tags or masks")
            document = encoded[0].example.texts[0]
            with smaller_batch_advice():
                return inspect_document(self.model, self.tokenizer, document, encoded[0].inputs[0], prediction)
        with smaller_batch_advice():
            return inspect_prediction(
                self.model, self.tokenizer, self.labels, encoded[0].example, encoded[0].inputs, prediction, word, mask
            )

    def vectors(
        self, texts: str | Sequence[str | Sequence[str] | LabelledText], *, batch_tokens: int = TOKENS, first: int = 1
    ) -> NDArray[np.float32]:
        """Return the vector of each text, (N, d) float32, in order: the mean of its states, scaled to length 1.

        The vector of a recurrent or causal encoder is its last state. The scalar product of two vectors is the cosine
        of their angle, which measures how similar the texts are if the model was trained for it. The head is not used,
        unless the model encodes the texts of a pair separately: the vectors are then those that the head compares.
        texts: texts, or pairs of texts, which have one vector; a single string is one text. batch_tokens, first: as in
        `predict`. Raises ConfigError for a text of the wrong form, and for a pair if pairs have no common vector;
        DataError for invalid Unicode.
        """
        if isinstance(texts, str):
            texts = [texts]
        if batch_tokens < 1:
            raise ConfigError(f"a batch must have at least 1 token, not {batch_tokens}")
        examples = [as_texts(text, number) for number, text in enumerate(texts, first)]
        pair = next((number for number, each in enumerate(examples, first) if len(each.texts) > 1), None)
        if pair is not None and self.model.encodes_separately:
            raise ConfigError(
                f"text {pair}: this is a pair, but the model encodes the texts of a pair separately, so that each has "
                "its own vector: select one text, as in columns.text=1"
            )
        if (language := self.model.sentence_language) is not None:
            groups = encode_documents(self.tokenizer, examples, self.limit, language)
        else:
            groups = encode_texts(self.tokenizer, examples, self.limit)
        self._warn_of_cuts([EncodedText(*each) for each in zip(texts, examples, groups, strict=True)], first)
        with smaller_batch_advice():
            return compute_vectors(self._body, [each for group in groups for each in group], self.device, batch_tokens)

    def _head_reader(self) -> HeadReader:
        """Return the reader of the head. Raises ConfigError if there is no head."""
        if self._reader is None:
            raise ConfigError(
                "the model has no head, so it predicts no labels: train one with train.start, or use the vectors of "
                "its texts (--vectors, or Predictor.vectors in Python)"
            )
        return self._reader

    def _example(self, text: Text, number: int) -> Any:
        """Return an input as an example. Raises ConfigError if it has the wrong form. number: its number."""
        if isinstance(text, TaggedSentence) and isinstance(self.head, TreeHead) and not text.features:
            return ParsedSentence(text.words)
        if isinstance(text, _Example):
            if isinstance(text, _example_type(self.head)):
                return text
            expected, found = _FORMS[_example_type(self.head)], _FORMS[type(text)]
            raise ConfigError(f"text {number}: expected {expected}, not {found}, because the head is {self.head.kind}")
        if isinstance(self.head, ClassificationHeadConfig | RegressionHeadConfig | MaskedLanguageModelHeadConfig):
            return as_texts(text, number)
        if isinstance(self.head, TaggingHeadConfig | TreeHead):
            if isinstance(text, str):
                is_tree = isinstance(self.head, TreeHead)
                return ParsedSentence(tuple(text.split())) if is_tree else tagged_sentence(text)[0]
            if not isinstance(text, Mapping):
                return _example_type(self.head)(tuple(text))
            raise ConfigError(f"text {number}: expected a text or a list of words, not {text!r:.80}")
        pair = (text.get("question"), text.get("context")) if isinstance(text, Mapping) else text
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise ConfigError(f"text {number}: expected a question and a context, not {text!r:.80}")
        return Question(str(number), str(pair[0]), str(pair[1]))

    def _check_pairs(self, examples: Sequence[Any], first: int) -> None:
        """Raise ConfigError for a single text if the model was trained on pairs, and vice versa."""
        expected = getattr(self.head, "texts", None)
        for number, example in enumerate(examples, first):
            if expected is not None and len(example.texts) != expected:
                given, needed = ("a pair", "single texts") if expected == 1 else ("a single text", "pairs of texts")
                raise ConfigError(f"text {number}: this is {given}, but the model was trained on {needed}")

    def _restore_text(self, text: Text, prediction: Prediction) -> Prediction:
        """Return a prediction whose offsets refer to the original text."""
        if isinstance(text, str) and isinstance(prediction, TagPrediction):
            return replace(prediction, text=text, offsets=tagged_sentence(text)[1])
        return prediction

    def _warn_of_cuts(self, encoded: Sequence[EncodedText], first: int) -> None:
        cut = {number: each.cut for number, each in enumerate(encoded, first) if each.cut}
        if cut:
            number, tokens = next(iter(cut.items()))
            others = f" and {len(cut) - 1:,} other texts" if len(cut) > 1 else ""
            warn(
                f"text {number}{others} longer than the model's {self.limit:,} tokens: {tokens:,} tokens at the end of "
                f"text {number} are not used"
            )


_FORMS = {
    LabelledText: "a text or a pair of texts",
    TaggedSentence: "the words of a sentence",
    ParsedSentence: "the words of a sentence to parse",
    Question: "a question and a context",
}
"""The forms of inputs, for messages."""


def _example_type(head: HeadConfig) -> Any:
    """Return the type of the examples of a head."""
    if isinstance(head, TreeHead):
        return ParsedSentence
    if isinstance(head, TaggingHeadConfig):
        return TaggedSentence
    return Question if isinstance(head, SpanHeadConfig) else LabelledText


def as_texts(text: Any, number: int) -> LabelledText:
    """Return a text or a pair of texts as an example. Raises ConfigError if it has another form. number: its number."""
    if isinstance(text, LabelledText):
        return text
    if isinstance(text, str):
        return LabelledText((text,))
    if isinstance(text, Sequence) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return LabelledText(tuple(text))
    raise ConfigError(f"text {number}: expected a text or a pair of texts, not {text!r:.80}")


def _engine(model: EncoderOnly, name: str, precision: str | None) -> ModelEngine:
    return model_engine("predict", model, EngineChoice(name=name, precision=precision))
