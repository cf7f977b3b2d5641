"""`translate_document`: a whole document through a model, its layout and markup kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Unpack

from dragoman.base.errors import ConfigError, DataError, DocumentError
from dragoman.base.log import info, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.progress import Work
from dragoman.documents.divided import DividedDocument, keeping
from dragoman.documents.formats.format import Content, Opened
from dragoman.documents.formats.union import format_of
from dragoman.documents.sentences import Sentence, Splitter
from dragoman.translation.alignment import Alignment, AttentionChoice, align_each
from dragoman.translation.files.faulty_lines import FaultyLines
from dragoman.translation.files.lines import one_line
from dragoman.translation.request import Request, RequestSettings
from dragoman.translation.result import Translation
from dragoman.translation.translator import Translator

_LANGUAGE = "en"


@dataclass(frozen=True)
class TranslatedDocument(Generic[Content]):
    """content: the document, text or bytes as it was given; sentences: that were translated.

    divided: how many were too long and were translated in parts; unfinished: how many reached the length limit;
    patched: how many were put together from parts to hold what they must. mended, wrong: in how many the guard found
    something that another search mended, and that none did.
    """

    content: Content
    sentences: int
    divided: int
    unfinished: int
    patched: int
    mended: int
    wrong: int

    @property
    def text(self: "TranslatedDocument[str]") -> str:
        """The content of a document that is text."""
        return self.content


def translate_document(
    model: str | Path | Sequence[str | Path] | Translator,
    document: Content,
    *,
    format: str = "text",
    batch_size: int = 64,
    engine: str = "auto",
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    attention: AttentionChoice | None = None,
    **settings: Unpack[RequestSettings],
) -> TranslatedDocument[Content]:
    """Translate the sentences of a document, as `dragoman translate --document` does; all else stays as it is.

    model: a translator, a folder, or several that translate together. document: text, or for docx the bytes of its
    file. format: text, markdown, html, srt, vtt or docx. attention: whose tells which words a translation's words come
    from, which says where markup stands in it. settings: beam, length_penalty, coverage_penalty, unknown, search, to,
    tags, glossary, keep, keep_patterns and guard, as `Translator.request` takes them. The others are as in
    `Translator.load`.

    Raises ConfigError for a format that there is not, for a package that is missing and for settings that make no
    sense, DocumentError for text that is no Unicode and for bytes that are no document, ModelError and ResourceError as
    `Translator`.
    """
    try:
        opened: Opened[Content] = format_of(format).opened(document)
    except DataError as error:
        raise DocumentError(str(error)) from None
    if isinstance(model, str | Path | Sequence):
        use_threads(threads)
        model = Translator.load(model, device, engine, precision, threads)
    if model.tokenizers.reads_vectors:
        raise ConfigError("this model reads vectors, and a document has words")
    request = model.request(**settings)
    return DocumentTranslation(model, request, batch_size, attention).of(opened)


@dataclass(frozen=True)
class DocumentTranslation:
    """How documents are translated."""

    translator: Translator
    request: Request
    batch_size: int
    attention: AttentionChoice | None = None

    def of(self, opened: Opened[Content]) -> TranslatedDocument[Content]:
        """The document's translation."""
        document = DividedDocument.of(opened, self._splitter())
        translations = self._translated(document.sentences)
        texts = [one_line(each.text) for each in translations]
        links = self._links(document, texts)
        guarded = [each.guarded for each in translations if each.guarded is not None]
        return TranslatedDocument(
            document.written(texts, links),
            len(document.sentences),
            document.divided,
            sum(not each.finished for each in translations),
            sum(each.patched for each in translations),
            sum(not each.left for each in guarded),
            sum(bool(each.left) for each in guarded),
        )

    def _splitter(self) -> Splitter:
        return Splitter(self._language(), lambda part: self.translator.fits(part, self.request))

    def _language(self) -> str:
        known = self.translator.meta.source_language
        if known is None:
            info(f"the model does not say what language it reads: sentences are divided as those of '{_LANGUAGE}'")
        return (known or _LANGUAGE).replace("_", "-").partition("-")[0]

    def _translated(self, sentences: Sequence[Sentence]) -> list[Translation]:
        texts = [sentence.text for sentence in sentences]
        requests = [keeping(self.request, sentence) for sentence in sentences]
        faulty = FaultyLines(self.translator, "replace")

        def found(asked: Sequence[Request]) -> list[Translation]:
            with Work("Translating", "sentences", len(texts)) as work:
                return [best[0] for best in faulty.translate_window(texts, asked, self.batch_size, 1, work)]

        try:
            return found(requests)
        except ConfigError:
            if all(request is self.request for request in requests):
                raise
            result = found([self.request] * len(texts))
            warn("this model cannot be held to write code as it is: it is put beside the words that it stood beside")
            return result

    def _links(self, document: DividedDocument[Content], texts: Sequence[str]) -> list[Alignment]:
        """Of the sentences that have marks and are changed; of the others none."""
        sentences, places = document.sentences, document.marked(texts)
        aligner = self.translator.aligner_of(self.request.tags, self.attention)
        sources, targets = [sentences[each].text for each in places], [texts[each] for each in places]
        links: list[Alignment] = [()] * len(sentences)
        try:
            found = align_each(aligner, sources, targets, self.batch_size)
        except ConfigError as error:
            if self.attention is not None:
                raise
            warn(f"markup is placed by the order of words alone: {error}")
            return links
        for place, alignment in zip(places, found, strict=True):
            links[place] = alignment or ()
        return links
