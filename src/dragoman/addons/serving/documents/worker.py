"""The process that parses and writes a document, so that one that takes too much time or memory can be ended alone.

`DocumentProcesses` starts a process that imports the formats and forks a worker for each document.
"""

import os
import resource
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from dragoman.addons.documents.formats.format import DecodedFile, ParsedDocument, parse_pivot
from dragoman.addons.documents.formats.union import get_format
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Mark, Passage, iterate_passages
from dragoman.addons.documents.pipeline import SegmentedDocument
from dragoman.addons.documents.sentences import Sentence
from dragoman.addons.serving.forking import fork_for_each_byte, ignore_signals
from dragoman.base.errors import DragomanError
from dragoman.base.machine.memory import limit_memory
from dragoman.inference.control.glossary import Match
from dragoman.statistical.alignment.links import Alignment

_LOWER_PRIORITY = 10
"""Niceness of the processes, in addition to that of the server: beside busy threads of the server, a process gets about
a tenth of a processor."""


@dataclass(frozen=True)
class Start:
    """The first message to a worker. bytes: how much it may allocate. seconds: the processor time that it may use."""

    format: str
    bytes: int
    seconds: int


class TextOfPassage(NamedTuple):
    """What the server needs of a passage to divide it into sentences: the fields of `Passage` without raws."""

    texts: Sequence[str]
    marks: Sequence[Mark]
    code: frozenset[int]
    kept: Sequence[tuple[int, int]]


class SentenceRange(NamedTuple):
    """A sentence of a parsed document. passage: the number of its passage. The other fields are those of `Sentence`."""

    passage: int
    begin: int
    end: int
    first: int
    last: int
    terms: Sequence[Match] = ()


@dataclass(frozen=True)
class Failed:
    """Reports that a call has failed. error: None if the worker had too little memory."""

    error: Exception | None


class DocumentWorker:
    """Parses and writes one document. Each method is called with a message of its name."""

    def __init__(self, format: str) -> None:
        self._format = get_format(format)
        self._decoded: DecodedFile[Any] | None = None
        self._parsed: list[tuple[ParsedDocument[Any], list[Passage]]] = []
        self._translated: tuple[list[SentenceRange], list[str], list[Alignment]] = [], [], []

    def decode(self, data: bytes, origin: str, on_error: str, encoding: str | None) -> Any:
        """Return the content of a file. Raises the errors of `Format.decode`."""
        self._decoded = self._format.decode(data, origin, on_error, encoding)
        return self._decoded.content

    def encode(self, content: Any) -> bytes:
        """Return a translation of the decoded file in its encoding."""
        assert self._decoded is not None
        return self._decoded.encode(content)

    def parse(self, content: Any, pivot: Any | None, languages: Languages) -> tuple[int, int]:
        """Return the number of the parsed document, and of its passages. pivot: as in `parse_pivot`, or None."""
        parsed = (
            self._format.parse(content, languages)
            if pivot is None
            else parse_pivot(self._format, content, pivot, languages)
        )
        passages = list(iterate_passages(parsed.parts))
        self._parsed.append((parsed, passages))
        return len(self._parsed) - 1, len(passages)

    def passages(self, number: int, begin: int, end: int) -> list[TextOfPassage]:
        """Return some of the passages of a parsed document."""
        return [_text_of(passage) for passage in self._parsed[number][1][begin:end]]

    def add(self, ranges: Sequence[SentenceRange], texts: Sequence[str], alignments: Sequence[Alignment]) -> None:
        """Receive the translations of further sentences, which `write` then takes."""
        own_ranges, own_texts, own_alignments = self._translated
        own_ranges += ranges
        own_texts += texts
        own_alignments += alignments

    def write(self, number: int) -> Any:
        """Return a parsed document with the translations of its sentences."""
        parsed, passages = self._parsed[number]
        ranges, texts, alignments = self._translated
        self._translated = [], [], []
        by_passage: dict[int, list[Sentence]] = {id(passage): [] for passage in passages}
        sentences = []
        for each in ranges:
            passage = passages[each.passage]
            sentences.append(Sentence(passage, each.begin, each.end, each.first, each.last, each.terms))
            by_passage[id(passage)].append(sentences[-1])
        return SegmentedDocument(sentences, 0, parsed, by_passage).write(texts, alignments)


def main() -> None:
    """Run the process that forks workers. The command-line argument is the file descriptor of its socket."""
    ignore_signals()
    for name, content in (("markdown", "A *dog*."), ("html", "<p>A <b>dog</b>."), ("docx", b""), ("srt", "")):
        with suppress(DragomanError):  # so that the libraries of the formats are imported, if they are installed
            get_format(name).parse(content)
    _give_precedence()  # after the imports, for which the first document waits
    with socket.socket(fileno=int(sys.argv[1])) as control:
        fork_for_each_byte(control, run_worker)


def _give_precedence() -> None:
    """Let the threads of the server go first, in this process and in the workers that it forks."""
    os.nice(_LOWER_PRIORITY)
    if hasattr(os, "SCHED_BATCH"):  # Linux; a process that wakes up then does not interrupt others
        with suppress(OSError):  # a sandbox may forbid it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def run_worker(connection: Connection) -> None:
    """Answer calls until the server closes the connection."""
    with suppress(EOFError, OSError):
        start: Start = connection.recv()
        limit_memory(start.bytes)
        resource.setrlimit(resource.RLIMIT_CPU, (start.seconds, start.seconds))
        worker = DocumentWorker(start.format)
        while True:
            method, arguments = connection.recv()
            connection.send(_answer(getattr(worker, method), arguments))


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except MemoryError:
        return Failed(None)
    except DragomanError as error:
        return Failed(error)
    except Exception as error:  # errors of other packages may not be picklable
        return Failed(RuntimeError(f"{type(error).__name__}: {error}"))


def _text_of(passage: Passage) -> TextOfPassage:
    texts = "".join(passage.texts)
    marks = tuple(mark._replace(raw=()) for mark in passage.marks)
    is_plain = all(len(text) == 1 for text in passage.texts)
    return TextOfPassage(texts if is_plain else tuple(passage.texts), marks, passage.code, tuple(passage.kept))
