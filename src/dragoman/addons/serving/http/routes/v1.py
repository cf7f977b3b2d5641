"""The route `/v1/translate`, which offers the features of `dragoman translate`."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from dragoman.addons.documents.formats.union import get_format
from dragoman.addons.serving.config import LimitsConfig, ServeConfig
from dragoman.addons.serving.errors import ClientDisconnected, InternalError, RequestError
from dragoman.addons.serving.http.fields import Texts
from dragoman.addons.serving.http.gate import Gate, KeyFields
from dragoman.addons.serving.http.requests import (
    check_forms,
    check_texts,
    describe_route,
    while_connected,
)
from dragoman.addons.serving.http.source_languages import AUTO, DetectedLanguage, SourceLanguage, source_languages
from dragoman.addons.serving.service.service import Service
from dragoman.addons.serving.service.text_batch import TextBatch
from dragoman.addons.serving.service.translation_job import TranslatedSentence, TranslatedText, TranslationJob
from dragoman.inference.translation.doubts import Doubts

KeptKind = Literal[
    "all",
    "number",
    "url",
    "email",
    "emoji",
    "markup",
    "placeholder",
    "mention",
    "hashtag",
    "path",
    "code",
    "escape",
]
"""`all`, or one of `KINDS`."""


class TranslateV1Fields(KeyFields):
    """One or several texts to translate, and options. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")

    text: Texts = Field(description="A text, or a list of texts.")
    source: str = Field(AUTO, description="Code of the source language; auto: the language of each text is detected.")
    target: str = Field(description="Code of the target language.")
    format: Literal["text", "html", "markdown"] = Field("text", description="Format of the texts. Markup is preserved.")
    nbest: int = Field(1, ge=1, description="Number of hypotheses per sentence, and of translations per text.")
    beam: int | None = Field(None, ge=1, description="Beam size; null: the model's default.")
    length_penalty: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | Literal["mean", "none"] | None = Field(
        None, description="Exponent of the GNMT length penalty, `mean` or `none`; null: the model's default."
    )
    glossary: dict[str, str | list[str] | None] | None = Field(
        None,
        description="Source terms and their translations: one form, several forms, or null to keep the term. null: "
        "the server's default.",
    )
    constraints: list[str | list[str]] = Field(
        [], description="Phrases that every translated sentence must contain. A phrase is one form or a list of forms."
    )
    keep: list[KeptKind] | None = Field(
        None,
        description="Types of spans that are copied byte for byte; null: the server's default, which searches again if "
        "some are missing.",
    )
    guard: bool | None = Field(
        None,
        description="Search again if a translation has problems, such as repetitions; null: the server's default.",
    )
    alignment: bool = Field(False, description="Return the word alignment of each sentence and its translation.")
    stream: bool = Field(
        False,
        description="Return one JSON line per sentence as soon as it is translated, and then the complete response as "
        "the last line.",
    )


class Hypothesis(BaseModel):
    """A translation of a sentence. score: the value by which hypotheses are ranked; log_probability: in nats."""

    text: str
    score: float
    log_probability: float


class Sentence(BaseModel):
    """A sentence with its translations, best first.

    alignment: links (i, j) between word i of the source and word j of the best translation; words are separated by
    whitespace and counted from 0. unknown_words: words of the source that the model does not know. expected_chrf: the
    chrF that translations of this probability had on the model's validation set, null if it was not measured.
    doubtful: whether it is below the threshold of the server, or the translation is unusually improbable.
    """

    source: str
    hypotheses: list[Hypothesis]
    finished: bool
    alignment: list[tuple[int, int]] | None = None
    unknown_words: list[str] = []
    expected_chrf: float | None = None
    doubtful: bool = False


class Translation(BaseModel):
    """A translation of a text, alternatives, and the text's sentences.

    source: the language of the text. A text in the target language, or without words, is returned unchanged and has no
    sentences. error: why the text could not be translated and was returned unchanged; null if it was translated.
    other_language: the language that the text is almost certainly in, if it is not the one that the request names.
    """

    text: str
    source: str
    alternatives: list[str]
    sentences: list[Sentence]
    error: str | None = None
    other_language: DetectedLanguage | None = None


class TranslatedV1(BaseModel):
    """The translations of all texts, in order. source, detected: the language of the first text in another language.

    unreliable: whether a model that translated was worse than copying the text or than a word-by-word dictionary on the
    validation set of its training.
    """

    source: str
    target: str
    detected: DetectedLanguage | None = None
    unreliable: bool = False
    translations: list[Translation]


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """Return the route POST /v1/translate."""
    router, limits = APIRouter(prefix="/v1", tags=["dragoman"]), config.limits

    @router.post(
        "/translate", response_model=TranslatedV1, **describe_route(TranslateV1Fields, form=False, streams=True)
    )
    async def translate(request: Request) -> Any:
        """Translate texts, with n-best lists, scores, alignments, a glossary, constraints and copied text."""
        fields, caller = await gate.enter(request, TranslateV1Fields, translates=True)
        texts = [fields.text] if isinstance(fields.text, str) else fields.text
        _check(fields, texts, limits)
        target = service.directions.match(fields.target)
        sources = await source_languages(service, fields.source, target, texts, caller.name, checks=True)
        job = TranslationJob(
            texts,
            fields.source,
            target,
            get_format(fields.format),
            fields.nbest - 1,
            _settings(fields),
            fields.alignment,
            caller.reserve,
            caller.name,
            doubts=True,
        )

        def build_response(results: list[TranslatedText | RequestError]) -> TranslatedV1:
            # the first language from which a text was translated
            first = next((each for each in sources if each.code != target), next(iter(sources), None))
            return TranslatedV1(
                source=target if first is None else first.code,
                target=target,
                detected=None if first is None else first.detected,
                unreliable=batch.is_unreliable,
                translations=[
                    _translation(text, source, result)
                    for text, source, result in zip(texts, sources, results, strict=True)
                ],
            )

        async with while_connected(request):
            batch = await TextBatch.resolve(service, job, [each.code for each in sources])
            if not fields.stream:
                return build_response(await batch.translate(service))
        return StreamingResponse(_lines(request, service, batch, build_response), media_type="application/x-ndjson")

    return router


def _check(fields: TranslateV1Fields, texts: list[str], limits: LimitsConfig) -> None:
    check_texts(texts, limits, "text")
    for name, value, maximum in (
        ("nbest", fields.nbest, limits.alternatives + 1),
        ("beam", fields.beam or 1, limits.beam),
        ("glossary", len(fields.glossary or {}), limits.glossary_terms),
        ("constraints", len(fields.constraints), limits.constraints),
    ):
        if value > maximum:
            raise RequestError(f"Invalid request: {name}: at most {maximum}")
    for phrase in fields.constraints:
        check_forms("constraints", phrase or [""], limits)
    for term, targets in (fields.glossary or {}).items():
        check_forms("glossary", term, limits)
        check_forms("glossary", () if targets is None else targets, limits)


def _settings(fields: TranslateV1Fields) -> dict[str, Any]:
    """Return the settings that the client sent. An empty list, an empty glossary or false overrides a default."""
    options: dict[str, Any] = {
        "beam": fields.beam,
        "length_penalty": fields.length_penalty,
        "constraints": fields.constraints or None,
        "keep": fields.keep,
        "guard": fields.guard,
    }
    sent = {name: value for name, value in options.items() if value is not None}
    return sent if fields.glossary is None else {**sent, "glossary": fields.glossary or None}


async def _lines(request: Request, service: Service, batch: TextBatch, build_response: Any) -> AsyncIterator[str]:
    """Yield one JSON line per translated sentence, in any order, with the indices of its text and sentence.

    The last line is the complete response.
    """
    sentences: asyncio.Queue[tuple[int, int, str] | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def on_sentence(text: int, sentence: int, translation: str) -> None:
        loop.call_soon_threadsafe(sentences.put_nowait, (text, sentence, translation))

    work = asyncio.ensure_future(batch.translate(service, on_sentence))
    work.add_done_callback(lambda _: sentences.put_nowait(None))
    try:
        while (event := await sentences.get()) is not None:
            text, sentence, translation = event
            yield _line({"text": text, "sentence": sentence, "translation": translation})
        try:
            yield _one_line(build_response(work.result()).model_dump_json())
        except Exception as error:
            known = error if isinstance(error, RequestError) else InternalError(error)
            request.state.failure = known.reason
            request.state.error_id = getattr(known, "id", None)
            yield _line({"error": known.message})
    finally:
        if not work.done():
            request.state.failure = ClientDisconnected.reason
        work.cancel()


def _line(value: dict[str, Any]) -> str:
    return _one_line(json.dumps(value, ensure_ascii=False))


_LINE_BREAKS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}
"""Characters that JSON strings may contain, but at which many clients, such as httpx, divide lines."""


def _one_line(text: str) -> str:
    """Return JSON as a line that every client reads as one."""
    return text.translate(_LINE_BREAKS) + "\n"


def _translation(text: str, source: SourceLanguage, result: TranslatedText | RequestError) -> Translation:
    if isinstance(result, RequestError):
        return Translation(
            text=text,
            source=source.code,
            alternatives=[],
            sentences=[],
            error=result.message,
            other_language=source.other,
        )
    return Translation(
        text=result.text,
        source=source.code,
        alternatives=list(result.alternatives),
        sentences=[_sentence(each) for each in result.sentences],
        other_language=source.other,
    )


def _sentence(sentence: TranslatedSentence) -> Sentence:
    return Sentence(
        source=sentence.source,
        hypotheses=[Hypothesis(text=a, score=b, log_probability=c) for a, b, c in sentence.hypotheses],
        finished=sentence.finished,
        alignment=None if sentence.alignment is None else list(sentence.alignment),
        **{} if sentence.doubts is None else _doubts(sentence.doubts),
    )


def _doubts(doubts: Doubts) -> dict[str, Any]:
    return {
        "unknown_words": list(doubts.unknown_words),
        "expected_chrf": doubts.expected_chrf,
        "doubtful": doubts.is_improbable,
    }
