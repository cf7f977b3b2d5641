"""Corpora in settings: `CorpusConfig` for sentence pairs, `TextCorpusConfig` for plain text."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from dragoman.base.settings.config import LIST, Config, by_form
from dragoman.data.corpora.templates import TemplateConfig
from dragoman.data.labelled.corpus import LabelledCorpusConfig, QuestionCorpusConfig
from dragoman.text.symbols import Tag as TagName
from dragoman.text.symbols import check_tag, language_tag, source_tags

FORMS = ("tsv", "jsonl", "tmx", "labelled", "questions")
"""Formats of a corpus in a single file."""

_RECORDS = ("jsonl", "labelled", "questions")
"""Formats of records with several fields, from which templates make pairs."""


class CorpusConfig(Config):
    """Sentence pairs in two line-aligned files, `source` and `target`, or in one file, `tsv`, `jsonl` or `tmx`.

    Alternatively, `template` makes pairs of any texts from the records of `jsonl`, `labelled` or `questions`.
    """

    source: Path | None = Field(
        default=None, description="Source sentences, one per line; plain, .gz, .bz2, .xz or .zst."
    )
    target: Path | None = Field(default=None, description="Translations of the source sentences, in the same order.")
    tsv: Path | None = Field(default=None, description="File of tab-separated pairs, instead of `source` and `target`.")
    jsonl: Path | None = Field(
        default=None, description="File with one JSON object per line, instead of `source` and `target`."
    )
    tmx: Path | None = Field(
        default=None, description="Translation memory (TMX 1.1 to 1.4b), instead of `source` and `target`."
    )
    source_column: int = Field(default=1, ge=1, description="Column of the source in `tsv`, counted from 1.")
    target_column: int = Field(default=2, ge=1, description="Column of the target in `tsv`, counted from 1.")
    source_field: str = Field(
        default="source",
        min_length=1,
        description="Key of the source in `jsonl`; dots separate the keys of nested objects, as in translation.en.",
    )
    target_field: str = Field(default="target", min_length=1, description="Key of the target in `jsonl`.")
    source_code: str | None = Field(
        default=None,
        min_length=1,
        description="Language code of the source in `tmx`, such as en, which also matches en-US.",
    )
    target_code: str | None = Field(default=None, min_length=1, description="Language code of the target in `tmx`.")
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
        description="Templates of the source and the target of each record. null: for `jsonl`, `source_field` and "
        "`target_field`; for `labelled`, the text and the label; for `questions`, the question, the context and the "
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

    @model_validator(mode="after")
    def _one_form(self) -> "CorpusConfig":
        given = [name for name in ("source", "target", *FORMS) if getattr(self, name) is not None]
        if given != ["source", "target"] and not (len(given) == 1 and given[0] in FORMS):
            raise ValueError(
                "give either both `source` and `target`, or one of `tsv`, `jsonl`, `tmx`, `labelled` and `questions` "
                "alone"
            )
        if self.template is not None and given[0] not in _RECORDS:
            raise ValueError(f"`template` makes pairs of records: use it with {', '.join(_RECORDS)}")
        if self.template is not None and (self.source_field, self.target_field) != ("source", "target"):
            raise ValueError("`template` replaces `source_field` and `target_field`: leave them out")
        if self.tsv is not None and self.source_column == self.target_column:
            raise ValueError("`source_column` and `target_column` are the same")
        if self.jsonl is not None and self.source_field == self.target_field:
            raise ValueError("`source_field` and `target_field` are the same")
        if self.tmx is not None and (self.source_code is None or self.target_code is None):
            raise ValueError("`tmx` requires the languages `source_code` and `target_code`, such as en and de")
        if self.target_language is not None:
            check_tag(language_tag(self.target_language))
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the corpus."""
        paths = [self.source, self.target, self.tsv, self.jsonl, self.tmx]
        paths += [group.path for group in (self.labelled, self.questions) if group is not None]
        return tuple(path for path in paths if path is not None)

    @property
    def records(self) -> TemplateConfig | None:
        """The templates of a corpus of records, or None for a corpus of pairs."""
        if self.labelled is not None:
            return self.template or TemplateConfig(source="{text}", target="{label}")
        if self.questions is not None:
            return self.template or TemplateConfig(source="question: {question} context: {context}", target="{answers}")
        return self.template

    def with_file(self, path: Path) -> "CorpusConfig":
        """Return the settings of another file of the same format. Raises ValueError for a corpus of two files."""
        for name in ("tsv", "jsonl", "tmx"):
            if getattr(self, name) is not None:
                return self.model_copy(update={name: path, "name": None})
        for name in ("labelled", "questions"):
            if (group := getattr(self, name)) is not None:
                group = group.model_copy(update={"path": path, "name": None})
                return self.model_copy(update={name: group, "name": None})
        raise ValueError("a corpus of two files has no single file")

    @property
    def selection(self) -> tuple[object, ...] | None:
        """The columns, fields or languages to read, as part of the fingerprint; None for two files."""
        if self.records is not None:
            group = self.labelled or self.questions
            return "records", self.records.source, self.records.target, *(() if group is None else group.selection)
        if self.tsv is not None:
            return self.source_column, self.target_column
        if self.jsonl is not None:
            return "jsonl", self.source_field, self.target_field
        if self.tmx is not None:
            return "tmx", self.source_code, self.target_code
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
        return CorpusConfig(jsonl=self.jsonl, template=self.template)

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
