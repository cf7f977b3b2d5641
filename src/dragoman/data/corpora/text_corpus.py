"""`TextCorpusConfig`: where plain text lies, how it is divided into documents, and what it counts for beside others."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from dragoman.base.settings.config import LIST, Config
from dragoman.data.corpora.corpus import by_form


class TextCorpusConfig(Config):
    """Plain text of one language: a file `text` that `documents` divides, or `jsonl`, in which an object is a document.

    No context of a language model reaches from one document into another.
    """

    text: Path | None = Field(default=None, description="Text; plain, .gz, .xz or .zst.")
    jsonl: Path | None = Field(default=None, description="A JSON object a line, each a document, instead of `text`.")
    documents: Literal["line", "blank_line", "file"] = Field(
        default="line",
        description="What a document is in `text`: line, each line; blank_line, what stands between blank lines, which "
        "are left out; file, all of it. The newlines inside a document are kept.",
    )
    heading: str | None = Field(
        default=None,
        description="With documents: file, a regular expression: with each line that it matches as a whole, and that "
        "stands after a blank line, a document begins. ' = [^=].* = ' are the articles of WikiText.",
    )
    field: str = Field(
        default="text",
        min_length=1,
        description="Key of the text in `jsonl`; dots lead into objects inside: article.body.",
    )
    name: str | None = Field(default=None, min_length=1, description="What messages call it; null: its file.")
    weight: float = Field(
        default=1.0,
        gt=0,
        le=10_000,
        description="How many times an epoch reads it: 2 is twice, 0.5 a different half each epoch in turn.",
    )

    @model_validator(mode="after")
    def _one_form(self) -> "TextCorpusConfig":
        if (self.text is None) == (self.jsonl is None):
            raise ValueError("give either `text` or `jsonl`")
        if self.jsonl is not None and (self.documents != "line" or self.heading is not None):
            raise ValueError("in `jsonl` each object is a document: leave out `documents` and `heading`")
        if self.heading is not None:
            if self.documents != "file":
                raise ValueError("`heading` divides a whole file: set `documents` to file")
            try:
                re.compile(self.heading)
            except re.error as error:
                raise ValueError(f"`heading` is no regular expression ({error})") from None
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The file that the corpus is read from."""
        return tuple(path for path in (self.text, self.jsonl) if path is not None)

    @property
    def selection(self) -> tuple[object, ...]:
        """What is taken out of the file, and as what."""
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
"""One corpus or several in settings."""
