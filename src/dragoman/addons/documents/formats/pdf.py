"""PDF (.pdf): its text is extracted with pypdf and translated; the translation is plain text.

A PDF has letters with positions, but no sentences and no layout that text of another length could be put into. Lines
are joined to paragraphs by their ends and lengths, which is a guess.
"""

import io
import logging
import re
from collections.abc import Iterator

from dragoman.addons.documents.formats.format import DecodedFile, ParsedDocument, reject_encoding
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage
from dragoman.base.cancellation import check_cancelled
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.base.packages import import_optional

_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\Z")
_SENTENCE_END = re.compile(r"[.!?:…。！？][\"'”’»)\]]*\Z")
_ITEM = re.compile(r"(?:[-*+•‣▪–—]|\(?[0-9]{1,3}[.)]|[A-Za-z][.)])(?=\s)")
_SHORT = 0.75
"""A line that is shorter than this fraction of its page's longest line may end a paragraph."""

_SURROGATES = re.compile("[\ud800-\udfff\x00]")


class PdfFormat:
    """The texts of PDF files. Their translations are plain text in UTF-8."""

    takes_encoding = False

    def parse(self, content: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
        """See `Format.parse`. content: what `decode` extracted, with a paragraph per line."""
        if not isinstance(content, str):
            raise ConfigError("the text of a PDF must be extracted first: pass the bytes of the file")
        lines = content.splitlines(keepends=True)
        parts = [Passage(line, line) if any(map(str.isalpha, line)) else line for line in lines]
        return ParsedDocument(parts, "".join)

    def decode(self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None) -> DecodedFile[str]:
        """See `Format.decode`. Warns that the layout is lost.

        Raises ConfigError if pypdf is not installed, and DataError for a file that is damaged or protected, and for one
        without text, such as scanned pages.
        """
        reject_encoding(encoding, "PDF files")
        pages = list(_pages(data, origin))
        if not any(map(str.isalpha, "".join(pages))):
            raise DataError(
                f"{origin}: the PDF contains no text, only pictures: recognise its text first, for example with "
                "ocrmypdf"
            )
        warn(
            f"{origin}: only the text of a PDF is translated, as plain text; layout, pictures and tables are lost. If "
            "there is a file that the PDF was made from, translate that"
        )
        return DecodedFile(
            "\n\n".join("\n\n".join(paragraphs(page)) for page in pages if page.strip()) + "\n", str.encode
        )


def _pages(data: bytes, origin: str) -> Iterator[str]:
    pypdf = import_optional("pypdf", "pdf")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it reports each oddity of a file
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise DataError(f"{origin}: the PDF is protected by a password: remove it first, for example with qpdf")
        for page in reader.pages:
            check_cancelled()
            yield _SURROGATES.sub("\ufffd", page.extract_text())
    except (DataError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything
        raise DataError(f"{origin}: the PDF cannot be read ({type(error).__name__}): it is damaged") from None


def paragraphs(page: str) -> list[str]:
    """Return the paragraphs of a page, each as one line. Words that are divided by hyphens at line ends are joined."""
    lines = [" ".join(line.split()) for line in page.splitlines()]
    longest = max(map(len, lines), default=0)
    found: list[list[str]] = []
    previous = ""
    for line in lines:
        begins = (
            not previous or _ITEM.match(line) or (_SENTENCE_END.search(previous) and len(previous) < _SHORT * longest)
        )
        if line and begins:
            found.append([line])
        elif line and _HYPHEN.search(previous) and line[0].islower():
            found[-1][-1] = found[-1][-1][:-1]
            found[-1].append(line)
        elif line:
            found[-1] += [" ", line]
        previous = line
    return ["".join(each) for each in found]
