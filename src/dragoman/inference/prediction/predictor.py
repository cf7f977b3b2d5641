"""`Predictor`, the Python interface to a model with a head, which predicts labels of texts."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError, ModelError, reject_options
from dragoman.base.machine.device import choose_device
from dragoman.base.machine.memory import smaller_batch_advice
from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.base.settings.load import Overrides, parse_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.data.labelled.examples import LabelledText
from dragoman.engines.choice import EngineChoice, ModelEngine, model_engine
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.examples import (
    EncodedText,
    Text,
    as_texts,
    check_pairs,
    example_of,
    read_examples,
    warn_of_cuts,
)
from dragoman.inference.prediction.formats import OutputFormat, formats_of
from dragoman.inference.prediction.heads.classification import encode_documents, encode_texts
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.prediction.heads.readers import FILLS, HeadReader, ReaderSettings, reader_of
from dragoman.inference.prediction.heads.report import compare_with_labels
from dragoman.inference.prediction.heads.tagging import TagPrediction, tagged_sentence
from dragoman.inference.prediction.label_output import PredictedExample
from dragoman.inference.prediction.outputs import TOKENS, compute_outputs, compute_vectors
from dragoman.inference.prediction.parts import choose_part, task_names
from dragoman.inference.prediction.pseudo_likelihood import pseudo_log_likelihoods
from dragoman.inference.prediction.subject import label_subject
from dragoman.inference.prediction.tree_subject import EncodedSentence, TreeSequence, check_generates, tree_subject
from dragoman.inference.process_bound import ProcessBound
from dragoman.inference.subject import NO_SETTINGS, Subject, SubjectSettings, check_not_blank
from dragoman.metrics.labels.report import Report
from dragoman.metrics.text_score import TextScore
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.none import NoHeadConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.models.heads.union import HeadConfig
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.models.kinds.registry import PREDICTION_MODEL, ModelKind
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unknown_tokens import UnknownTokenWarning
from dragoman.text.words import count_words


class Predictor(ProcessBound):
    """A trained model that predicts labels. Predictions do not depend on the batch size or on the other texts.

    >>> from dragoman import Predictor
    >>> predictor = Predictor.load("runs/labels")
    >>> prediction = predictor.predict(["The food was lovely and the staff was helpful."])[0]
    >>> prediction.label in predictor.labels
    True
    """

    kind: ModelKind = PREDICTION_MODEL

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: Tokenizer,
        head: HeadConfig,
        length: int | None = None,
        meta: Meta | None = None,
        *,
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
            settings = ReaderSettings(
                self.limit, self.meta.threshold, fills, model.sentence_language, model.reads_factors
            )
            self._reader = reader_of(head, tokenizer, settings)

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
        return cls.of(loaded, fills, task, engine, precision or "float32")

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
        kind = loaded.kind or cls.kind
        if not issubclass(kind.config, EncoderOnlyConfig):
            raise ModelError(f"a Predictor has an encoder with a head, but this is {kind.noun}: use dragoman.load")
        config = parse_settings(loaded.config["model"], kind.config, "the model section of config.yaml")
        part = choose_part(loaded, config, task)
        tokenizer = loaded.tokenizers.source
        predictor = cls(
            part.model,
            tokenizer,
            part.head,
            part.length,
            part.meta,
            fills=fills,
            body=part.body,
            engine=engine,
            precision=precision,
        )
        predictor.kind = kind
        return predictor

    @property
    def has_head(self) -> bool:
        """Whether the model has a head. A body without one, such as an imported BERT, has only vectors of texts."""
        return self._reader is not None

    @property
    def precision(self) -> str:
        """The number format of matrix products, such as float32 or int8."""
        return self.engine.precision

    @property
    def task(self) -> str:
        """What is predicted: the kind of the head, such as `classification`."""
        return self.head.kind

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes; empty for a model without classes."""
        return getattr(self.head, "labels", None) or ()

    @property
    def formats(self) -> tuple[OutputFormat, ...]:
        """The formats that fit the predictions; the first is the default."""
        return formats_of(self.head)

    def read_examples(self, source: str | Path, settings: Overrides = (), labelled: bool = False) -> Sequence[Any]:
        """Return the examples of a file, which `predict` reads; see `examples.read_examples`."""
        return read_examples(self.head, source, settings, labelled)

    def evaluate_file(self, test: str | Path, settings: Overrides = ()) -> Report:
        """Compare the predictions for the examples of a file with their labels.

        settings: of the corpus. Raises DataError if the file cannot be read or lacks labels, and the errors of
        `predict`.
        """
        examples = self.read_examples(test, settings, labelled=True)
        return compare_with_labels(self.head, examples, self.predict(examples))

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
        warn_of_cuts(encoded, first, self.limit)
        return self.predict_encoded(encoded, batch_tokens=batch_tokens)

    def encode(self, texts: Sequence[Text], *, first: int = 1) -> list[EncodedText]:
        """Return the inputs of the model for each text, in order. The arguments and errors are those of `predict`."""
        reader = self._head_reader()
        examples = [example_of(self.head, text, number) for number, text in enumerate(texts, first)]
        check_pairs(self.head, examples, first)
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

    def score(
        self, texts: Sequence[str], *, stride: int | None = None, batch_size: int = 64, batch_tokens: int = TOKENS
    ) -> list[TextScore]:
        """Return the pseudo-log-likelihood of each text, in order. Only masked language models can score texts.

        Each token is masked in turn and predicted from all others (Salazar et al. 2020). The end of a text is not
        predicted. stride, batch_size: those of other kinds; batch_tokens limits the batches, as in `predict`. Raises
        ModelError for another head, ConfigError for a stride, DataError for invalid Unicode.
        """
        reject_options({"--stride": stride}, "with a language model that reads in one direction")
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

    def subject(self, text: Text, settings: SubjectSettings = NO_SETTINGS) -> Subject:
        """Return the prediction for a text with its computation: `dragoman.inspect` and others look at it.

        It is the log-probability of the predicted label, or the number that the model predicts. For a parser, it is the
        log-probability of the predicted tree if a decoder generates it, and otherwise its score in the chart.

        Raises ConfigError for settings of other models, DataError for a text that is blank or too long, ModelError for
        a head whose predictions cannot be explained, and the errors of `predict`.
        """
        reject_options({"--target": settings.target, "--to": settings.to}, "with a translation model")
        visible = self._visible()
        if isinstance(self.head, TreeHead):
            reject_options({"--word": settings.word, "--mask": settings.mask}, "with a model of tags or masks")
            encoded, sentence = visible._sentence(text, settings.tags)
            sentence.arguments(visible.device)  # checks the length before the sentence is parsed
            (prediction,) = visible.predict_encoded([encoded])
            assert isinstance(prediction, TreePrediction), "the model parses"
            found = tree_subject(visible.model, visible.tokenizer, sentence, prediction)
        else:
            reject_options({"--tags": settings.tags}, "with a translation model or a parser")
            if visible.model.sentence_language is not None:
                reject_options({"--word": settings.word, "--mask": settings.mask}, "with a model of tags or masks")
            (encoded,) = visible.encode([text])
            (prediction,) = visible.predict_encoded([encoded])
            predicted = PredictedExample(encoded.example, encoded.inputs, prediction)
            found = label_subject(visible.model, visible.tokenizer, visible.labels, predicted, settings)
        return replace(found, own=lambda: self.subject(text, settings).target)

    def sequence(self, text: Text, settings: SubjectSettings = NO_SETTINGS) -> TreeSequence:
        """Return the tree of a sentence as a sequence of symbols. Raises ConfigError for other models."""
        head = check_generates(self.head)
        reject_options({"--to": settings.to}, "with a translation model")
        visible = self._visible()
        encoded, sentence = visible._sentence(text, settings.tags)
        return TreeSequence(
            visible.model, visible.tokenizer, head, sentence, lambda outputs: visible.read_outputs(encoded, outputs)
        )

    def _sentence(self, text: Text, tags: Sequence[str]) -> tuple[EncodedText, EncodedSentence]:
        """Return a sentence to parse, with its input. tags: the tag of a treebank, if any.

        Raises ConfigError for several tags and for a pair, DataError for a blank sentence.
        """
        if len(tags) > 1:
            raise ConfigError(f"--tags: a parser reads at most one tag, that of the treebank, not {', '.join(tags)}")
        example = example_of(self.head, text, 1)
        (encoded,) = self.encode([replace(example, tag=tags[0]) if tags else example])
        check_not_blank(" ".join(encoded.example.words), "sentence")
        (row,) = encoded.inputs
        return encoded, EncodedSentence(encoded.example, row)

    def _visible(self) -> "Predictor":
        """Return the predictor with the engine that computes with PyTorch, whose computation is visible."""
        if self.engine.name == "torch":
            return self
        visible = copy(self)
        visible.engine = ModelEngine("torch", "float32", self.model)
        return visible

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
        warn_of_cuts([EncodedText(*each) for each in zip(texts, examples, groups, strict=True)], first, self.limit)
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

    def _restore_text(self, text: Text, prediction: Prediction) -> Prediction:
        """Return a prediction whose offsets refer to the original text."""
        if isinstance(text, str) and isinstance(prediction, TagPrediction):
            return replace(prediction, text=text, offsets=tagged_sentence(text)[1])
        return prediction


def _engine(model: EncoderOnly, name: str, precision: str | None) -> ModelEngine:
    return model_engine("predict", model, EngineChoice(name=name, precision=precision))
