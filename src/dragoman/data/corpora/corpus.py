"""Corpora in settings: `CorpusConfig` for sentence pairs, `TextCorpusConfig` for plain text."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, Tag, model_validator

from dragoman.base.settings.config import LIST, Config, by_form
from dragoman.data.corpora.templates import TemplateConfig
from dragoman.data.labelled.corpus import Column, LabelledCorpusConfig, QuestionCorpusConfig
from dragoman.text.symbols import Tag as TagName
from dragoman.text.symbols import check_tag, language_tag, source_tags

FORMS = ("pairs", "labelled", "questions")
"""Settings of a corpus in a single file."""

ADDRESS = "data.train"
"""The usual address of a corpus: what precedes the names of its settings."""

PairFormat = Literal["tsv", "csv", "jsonl", "tmx", "xliff", "po"]
"""Formats of sentence pairs in a single file."""


class CorpusConfig(Config):
    """Sentence pairs in one file, `pairs`, or in two line-aligned files, `source` and `target`.

    A path alone stands for `pairs`. Alternatively, `template` makes pairs of any texts from the records of a JSON Lines
    file, of `labelled` or of `questions`.
    """

    source: Path | None = Field(
        default=None, description="Source sentences, one per line; plain, .gz, .bz2, .xz or .zst."
    )
    target: Path | None = Field(default=None, description="Translations of the source sentences, in the same order.")
    pairs: Path | None = Field(
        default=None,
        description="File of sentence pairs, instead of `source` and `target`: TSV, CSV, JSON Lines, TMX, XLIFF or "
        "gettext (PO).",
    )
    format: PairFormat | Literal["auto"] = Field(
        default="auto",
        description="Format of `pairs`. auto: recognised by the contents of the file. tsv: tab-separated columns, in "
        "which quotes have no special meaning. csv: columns with quotes (RFC 4180), separated by commas, semicolons or "
        "tabs.",
    )
    source_column: Column | None = Field(
        default=None,
        description="Column of the source in TSV and CSV: its number, counted from 1, or its name in the first line. "
        "In JSON Lines, a key; dots separate the keys of nested objects, as in translation.en. null: by the names of "
        "the columns, such as source or en, or else column 1.",
    )
    target_column: Column | None = Field(
        default=None,
        description="Column or key of the target, like `source_column`; null: by the names, or else column 2.",
    )
    header: bool | None = Field(
        default=None,
        description="Whether the first line of TSV and CSV contains the names of the columns. null: it does if it "
        "names a source and a target, or two languages.",
    )
    source_code: str | None = Field(
        default=None,
        min_length=1,
        description="Language code of the source in TMX and XLIFF, or in the names of columns, such as en, which also "
        "matches en-US. null: if the file has two languages, its source language.",
    )
    target_code: str | None = Field(
        default=None, min_length=1, description="Language code of the target in `pairs`, like `source_code`."
    )
    labelled: LabelledCorpusConfig | None = Field(
        default=None,
        description="Labelled texts in any format of the tasks with labels, instead of `source` and `target`. Fields "
        "of `template`: text, pair, label.",
    )
    questions: QuestionCorpusConfig | None = Field(
        default=None,
        description="Questions in the JSON format of SQuAD, instead of `source` and `target`. Fields of `template`: "
        "question, context, answers.",
    )
    template: TemplateConfig | None = Field(
        default=None,
        description="Templates of the source and the target of each record. null: for `pairs`, `source_column` and "
        "`target_column`; for `labelled`, the text and the label; for `questions`, the question, the context and the "
        "answer.",
    )
    name: str | None = Field(
        default=None, min_length=1, description="Name of the corpus in messages; null: its file names."
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        le=10_000,
        description="Number of passes over the corpus per epoch. 2: two passes. 0.5: a different half in each epoch.",
    )
    tags: tuple[TagName, ...] = Field(
        default=(),
        description="Tags such as bt or domain-law, which are vocabulary entries inserted before each source sentence.",
    )
    target_language: str | None = Field(
        default=None,
        description="Target language of this corpus, for models with several target languages. It is converted to a "
        "tag, such as to:de.",
    )
    _address: str = PrivateAttr(ADDRESS)

    def at(self, address: str) -> "CorpusConfig":
        """Return the corpus with another address, which precedes the names of its settings in error messages."""
        corpus = self.model_copy()
        corpus._address = address
        return corpus

    @property
    def address(self) -> str:
        """Where the user sets the settings of the corpus, such as `pairs` for `pairs.source_column`."""
        return self._address

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        return {"pairs": value} if isinstance(value, str | Path) else value

    @model_validator(mode="after")
    def _one_form(self) -> "CorpusConfig":
        given = [name for name in ("source", "target", *FORMS) if getattr(self, name) is not None]
        if given != ["source", "target"] and not (len(given) == 1 and given[0] in FORMS):
            raise ValueError(
                "give either both `source` and `target`, or one of `pairs`, `labelled` and `questions` alone"
            )
        if self.template is not None:
            if self.source is not None or self.format not in ("auto", "jsonl"):
                raise ValueError(
                    "`template` makes pairs of records: use it with `labelled`, `questions` or JSON Lines in `pairs`"
                )
            if self.source_column is not None or self.target_column is not None:
                raise ValueError("`template` replaces `source_column` and `target_column`: leave them out")
        if self.pairs is not None and self.columns[0] == self.columns[1]:
            raise ValueError("`source_column` and `target_column` are the same")
        if self.header is False and any(isinstance(column, str) for column in self.columns):
            raise ValueError("`source_column` or `target_column` is a name, but `header` is false: use numbers")
        if self.source_code is not None and self.source_code == self.target_code:
            raise ValueError("`source_code` and `target_code` are the same")
        if self.target_language is not None:
            check_tag(language_tag(self.target_language))
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the corpus."""
        paths = [self.source, self.target, self.pairs]
        paths += [group.path for group in (self.labelled, self.questions) if group is not None]
        return tuple(path for path in paths if path is not None)

    @property
    def columns(self) -> tuple[int | str, int | str]:
        """The columns to read from a table whose columns have no names: the chosen ones, or the first two."""
        return self.source_column or 1, self.target_column or 2

    @property
    def records(self) -> TemplateConfig | None:
        """The templates of a corpus of records, or None for a corpus of pairs."""
        if self.labelled is not None:
            return self.template or TemplateConfig(source="{text}", target="{label}")
        if self.questions is not None:
            return self.template or TemplateConfig(source="question: {question} context: {context}", target="{answers}")
        return self.template

    def with_file(self, path: Path) -> "CorpusConfig":
        """Return the settings of another file of the same form. Raises ValueError for a corpus of two files."""
        if self.pairs is not None:
            return self.model_copy(update={"pairs": path, "name": None})
        for name in ("labelled", "questions"):
            if (group := getattr(self, name)) is not None:
                group = group.model_copy(update={"path": path, "name": None})
                return self.model_copy(update={name: group, "name": None})
        raise ValueError("a corpus of two files has no single file")

    @property
    def selection(self) -> tuple[object, ...] | None:
        """The settings that determine what is read from the file, as part of the fingerprint; None for two files."""
        if self.records is not None:
            group = self.labelled or self.questions
            return "records", self.records.source, self.records.target, *(() if group is None else group.selection)
        if self.pairs is not None:
            columns = self.source_column, self.target_column, self.header
            return "pairs", self.format, *columns, self.source_code, self.target_code
        return None

    @property
    def all_tags(self) -> tuple[str, ...]:
        """The tags of the source sentences, in order, including the tag of the target language."""
        return source_tags(self.target_language, self.tags)

    def languages(self, source: str | None, target: str | None) -> tuple[str | None, str | None]:
        """Return the codes of the languages of the pairs. source, target: codes if the corpus does not name them."""
        return self.source_code or source, self.target_language or self.target_code or target

    @property
    def side_names(self) -> tuple[str, str]:
        """The names of the sides in messages."""
        if self.source is not None:
            return str(self.source), str(self.target)
        return f"source of {self}", f"target of {self}"

    def __str__(self) -> str:
        return self.name or " + ".join(map(str, self.files))


Corpora = Annotated[
    Annotated[CorpusConfig, Tag(CorpusConfig.__name__)]
    | Annotated[tuple[CorpusConfig, ...], Field(min_length=1), Tag(LIST)],
    by_form(CorpusConfig),
]
"""One corpus, or a list of corpora, in settings."""


class TextCorpusConfig(Config):
    """Plain text in one language: a `text` file divided by `documents`, or `jsonl` with one document per object.

    A single path is one of them, by its extension.
    The context of a language model never extends to another document.
    """

    text: Path | None = Field(default=None, description="Text file; plain, .gz, .bz2, .xz or .zst.")
    jsonl: Path | None = Field(
        default=None, description="File with one JSON object per line, one per document, instead of `text`."
    )
    documents: Literal["line", "blank_line", "file"] = Field(
        default="line",
        description="Division of `text` into documents. line: each line is a document. blank_line: blank lines, which "
        "are dropped, separate documents. file: the whole file is a document. Newlines inside a document are kept.",
    )
    heading: str | None = Field(
        default=None,
        description="Regular expression for headings, with `documents: file`. A line starts a new document if it "
        "follows a blank line and the whole line matches. ' = [^=].* = ' matches the article headings of WikiText.",
    )
    field: str = Field(
        default="text",
        min_length=1,
        description="Key of the text in `jsonl`; dots separate the keys of nested objects, as in article.body.",
    )
    template: TemplateConfig | None = Field(
        default=None,
        description="Templates of the two parts of a document in `jsonl`, instead of `field`: a prompt, which usually "
        "ends with a marker, and its continuation.",
    )
    name: str | None = Field(
        default=None, min_length=1, description="Name of the corpus in messages; null: its file name."
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        le=10_000,
        description="Number of passes over the corpus per epoch. 2: two passes. 0.5: a different half in each epoch.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        if not isinstance(value, str | Path):
            return value
        return {"jsonl" if ".jsonl" in Path(value).suffixes else "text": value}

    @model_validator(mode="after")
    def _one_form(self) -> "TextCorpusConfig":
        if (self.text is None) == (self.jsonl is None):
            raise ValueError("give either `text` or `jsonl`")
        if self.jsonl is not None and (self.documents != "line" or self.heading is not None):
            raise ValueError("in `jsonl` each object is a document: leave out `documents` and `heading`")
        if self.template is not None and (self.jsonl is None or self.field != "text"):
            raise ValueError("`template` makes documents from the objects of `jsonl`, and replaces `field`")
        if self.heading is not None:
            if self.documents != "file":
                raise ValueError("`heading` divides a whole file: set `documents` to file")
            try:
                re.compile(self.heading)
            except re.error as error:
                raise ValueError(f"`heading` is not a valid regular expression ({error})") from None
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The file of the corpus."""
        return tuple(path for path in (self.text, self.jsonl) if path is not None)

    def as_records(self) -> CorpusConfig:
        """Return the records of a corpus with a template, as a corpus of prompts and continuations."""
        assert self.template is not None
        return CorpusConfig(pairs=self.jsonl, template=self.template)

    @property
    def selection(self) -> tuple[object, ...]:
        """The settings that determine which text is read from the file, as part of the fingerprint."""
        if self.template is not None:
            return "documents", "records", self.template.source, self.template.target
        if self.jsonl is not None:
            return "documents", "jsonl", self.field
        return "documents", self.documents, self.heading

    def __str__(self) -> str:
        return self.name or " + ".join(map(str, self.files))


TextCorpora = Annotated[
    Annotated[TextCorpusConfig, Tag(TextCorpusConfig.__name__)]
    | Annotated[tuple[TextCorpusConfig, ...], Field(min_length=1), Tag(LIST)],
    by_form(TextCorpusConfig),
]
"""One corpus, or a list of corpora, in settings."""
