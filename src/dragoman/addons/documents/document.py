"""`translate_document`: translates a document and preserves its layout and markup. Also reads and writes documents."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Unpack

from dragoman.addons.documents.expected_spans import expected_spans
from dragoman.addons.documents.formats.encoding import EncodingError
from dragoman.addons.documents.formats.format import Content, DecodedFile, Format
from dragoman.addons.documents.formats.recognition import check_content
from dragoman.addons.documents.formats.union import WRITTEN_AS, get_format
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.pipeline import DocumentPipeline, SegmentedDocument
from dragoman.base.companion import compressor_for
from dragoman.base.errors import ConfigError, DataError, DocumentError
from dragoman.base.files import atomic_write
from dragoman.base.log import info, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.progress import Progress
from dragoman.data.corpora.inputs import one_line
from dragoman.data.files.lines import read_chunks
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.load import translator_of
from dragoman.inference.translation.files.faulty_lines import FaultyLines, on_error_of
from dragoman.inference.translation.request import Request, RequestSettings, TextRequest
from dragoman.inference.translation.result import Translation
from dragoman.models.attention_weights import AttentionChoice
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.symbols import tag_languages

_DEFAULT_LANGUAGE = "en"


@dataclass(frozen=True)
class TranslatedDocument(Generic[Content]):
    """A translated document and its sentence statistics.

    content: text or bytes, as in the original document. The other fields are numbers of sentences. sentences: all
    translated sentences; divided: overlong sentences that were translated in parts; unfinished: translations that ended
    at the length limit; patched: translations assembled from parts to meet their constraints; repaired, wrong:
    sentences in which the guard found a problem that another search solved, or that no search solved.
    """

    content: Content
    sentences: int
    divided: int
    unfinished: int
    patched: int
    repaired: int
    wrong: int

    @property
    def text(self: "TranslatedDocument[str]") -> str:
        """The content of a document in a text format."""
        return self.content


def translate_document(
    model: str | Path | Sequence[str | Path] | SupportsLines,
    document: Content,
    *,
    format: str = "text",
    batch_size: int = 64,
    system: str | None = None,
    engine: str = "auto",
    precision: str | None = "auto",
    device: str | None = None,
    threads: int | None = None,
    attention: AttentionChoice | None = None,
    encoding: str | None = None,
    **settings: Unpack[RequestSettings],
) -> TranslatedDocument[Content]:
    r"""Translate the sentences of a document like `dragoman translate-document`, and preserve everything else.

    model: a translator, a model folder, or several folders that form an ensemble. document: text, or the bytes of a
    file; archives, such as docx and odt, are always bytes. encoding: the encoding of the bytes, such as windows-1252,
    by default what they show (see docs/how-to/documents). format: text, markdown, rst, asciidoc, latex, html, xhtml,
    srt, vtt, ass, sbv, ttml, lrc, docx, odt, odp, ods, pptx, xlsx, epub, pdf, po, xliff, json, properties, strings,
    resx, fluent or rails. attention: the decoder attention that aligns words, which determines the positions of markup
    in the translation. settings: beam, length_penalty, coverage_penalty, unknown, search, to, tags, glossary, keep,
    keep_patterns and guard, as in
    `Translator.request`. The other arguments are those of `Translator.load`.

    If keep is not given, a sentence whose translation lacks a number, an address, a placeholder or another span of
    `inference.control.keep.KINDS` is translated again with these spans enforced. An empty list prevents this.

    Raises ConfigError for an unknown format, a missing package and inconsistent settings; DocumentError for text that
    is not valid Unicode and for bytes that are not in the given format; ModelError and ResourceError like `Translator`.

    >>> from dragoman import translate_document
    >>> page = translate_document("runs/ende", "# The dog\n\nThe *dog* sleeps.\n", format="markdown")
    >>> print(page.text)
    # ...
    <BLANKLINE>
    ...
    """
    file_format: Format[Content] = get_format(format)
    if isinstance(model, str | Path | Sequence):
        use_threads(threads)
        model = translator_of(model, device, engine=engine, precision=precision, threads=threads, system=system)
    if model.tokenizers.reads_vectors:
        raise ConfigError("this model expects vectors, so it cannot translate a document")
    request = model.request(**settings)
    expected = expected_spans(settings.get("keep"), settings.get("keep_patterns"))
    try:
        encode: Callable[[Any], Any] | None = None
        if isinstance(document, bytes):
            check_content(document, format, "the document")
            decoded = file_format.decode(document, "the document", "stop", encoding)
            document, encode = decoded.content, decoded.encode
        elif encoding is not None:
            raise ConfigError("only the bytes of a file have an encoding: pass bytes, or omit the encoding")
        parsed = file_format.parse(document, languages_of(model, request))
    except DataError as error:
        raise DocumentError(str(error)) from None
    pipeline = DocumentPipeline(
        model, request, _language(model), batch_size=batch_size, attention=attention, expected=expected
    )
    segmented = pipeline.segment(parsed)
    translations = _translate(pipeline, segmented, model, batch_size)
    texts = [one_line(each.text) for each in translations]
    written = segmented.write(texts, _align(pipeline, segmented, texts, required=attention is not None))
    written = written if encode is None else encode(written)
    guarded = [each.guarded for each in translations if each.guarded is not None]
    return TranslatedDocument(
        written,
        len(segmented.sentences),
        segmented.oversized,
        sum(not each.finished for each in translations),
        sum(each.patched for each in translations),
        sum(not each.left for each in guarded),
        sum(bool(each.left) for each in guarded),
    )


def languages_of(model: SupportsLines, request: Request) -> Languages:
    """Return the source and target languages of a request. A language that the model does not name is None."""
    target = next(iter(tag_languages(request.tags)), model.meta.target_language)
    return Languages(model.meta.source_language, target)


def _language(model: SupportsLines) -> str:
    """Return the language for sentence splitting: the source language of the model, or the default language."""
    language = model.meta.source_language
    if language is None:
        info(f"the model does not name its source language: sentences are split by the rules for '{_DEFAULT_LANGUAGE}'")
    return language or _DEFAULT_LANGUAGE


def _translate(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], model: SupportsLines, batch_size: int
) -> list[Translation]:
    """Return the best translation of each sentence. Raises ConfigError if the model rejects all attempts."""
    faulty = FaultyLines(model, "replace")
    rejection: ConfigError | None = None

    def run(lines: Sequence[TextRequest]) -> list[Translation]:
        texts, requests = [text for text, _ in lines], [request for _, request in lines]
        with Progress("Translating", "sentences", len(lines)) as progress:
            return [best[0] for best in faulty.translate_window(texts, requests, batch_size, 1, progress)]

    for lines in pipeline.attempts(document.sentences):
        try:
            translations = run(lines)
        except ConfigError as error:
            rejection = error
            continue
        if rejection is not None:
            warn("this model cannot be constrained to copy inline code: it is placed next to the surrounding words")
        repairs = pipeline.repairs(document.sentences, [one_line(each.text) for each in translations])
        if repairs:
            with suppress(ConfigError):  # the engine does not support constraints
                for index, repaired in zip(repairs, run(list(repairs.values())), strict=True):
                    translations[index] = repaired
        return translations
    assert rejection is not None
    raise rejection


def _align(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], texts: Sequence[str], required: bool
) -> list[Alignment]:
    """Return the alignments of the sentences with markup.

    If the model cannot align words, raises ConfigError if alignments are `required`, else returns empty alignments.
    """
    try:
        return pipeline.align(document, texts)
    except ConfigError as error:
        if required:
            raise
        warn(f"markup is placed by word order alone: {error}")
        return [()] * len(texts)


def read_document(
    path: Path | None, format: str, on_error: str = "stop", encoding: str | None = None
) -> DecodedFile[Any]:
    """Read a document from a file, which may be compressed (.gz, .bz2, .xz, .zst), or from standard input.

    Line breaks are not converted. format: the name of the format. on_error: `stop` raises an error for broken text,
    `replace` replaces it with U+FFFD. encoding: the encoding of the text, by default what the file shows. Raises
    DataError for a file that is missing, unreadable or evidently in another format, and for broken text, with the line
    number; ConfigError for an unknown format, encoding or value of on_error.
    """
    if on_error_of(on_error) == "blank":
        raise ConfigError("--on-error blank applies to lines, not to documents: use stop or replace")
    file_format = get_format(format)
    data = sys.stdin.buffer.read() if path is None else b"".join(read_chunks(path))
    origin = str(path or "standard input")
    check_content(data, format, origin)
    try:
        return file_format.decode(data, origin, on_error, encoding)
    except EncodingError as error:
        raise error.with_remedy("--encoding ENCODING. Broken text becomes U+FFFD with --on-error replace") from None


def validate_paths(source: Path | None, target: Path | None, format: str) -> None:
    """Raise DataError if the source file is missing, the target would overwrite it, or it has the wrong extension."""
    if source is not None and (source.is_dir() or not source.exists()):
        raise DataError(f"there is no file {source}: check --input")
    if source is not None and target is not None and source.resolve() == target.resolve():
        raise DataError(f"--output {target} would overwrite the file to translate: choose another name")
    if target is not None and format in WRITTEN_AS and target.suffix.lower() == f".{format}":
        raise DataError(f"--output {target}: the translation is plain text: name it {target.with_suffix('.txt').name}")


def write_document(data: bytes, path: Path | None) -> None:
    """Write the bytes of a document to a file or to standard output.

    The file is written atomically and compressed according to its extension. Raises ResourceError for a file that
    cannot be written.
    """
    if path is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        atomic_write(path, compressor_for(path)(data))
