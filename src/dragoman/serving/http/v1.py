"""`/v1/translate`: the features of `dragoman translate`, for clients written for dragoman."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from dragoman.control.keep import KINDS
from dragoman.documents.formats.union import format_of
from dragoman.serving.config import LimitsConfig, ServeConfig
from dragoman.serving.detection.languages import known_code
from dragoman.serving.errors import Refusal
from dragoman.serving.http.gate import Gate, KeyFields
from dragoman.serving.http.requests import AUTO, Detected, check_texts, detect_language, openapi, while_connected
from dragoman.serving.service import Service, TranslatedSentence, TranslatedText, TranslationJob


class TranslateV1Fields(KeyFields):
    """Text to translate, and options. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")

    text: str | list[str] = Field(description="A text, or a list of texts in one language.")
    source: str = Field(
        AUTO, description="Code of the source language; auto: detected from the first text that allows it."
    )
    target: str = Field(description="Code of the target language.")
    format: Literal["text", "html", "markdown"] = Field(
        "text", description="Format of the texts; markup keeps its position."
    )
    nbest: int = Field(1, ge=1, description="Hypotheses per sentence, and translations per text.")
    beam: int | None = Field(None, ge=1, description="Beam size; null: the model's default.")
    length_penalty: float | Literal["mean", "none"] | None = Field(
        None, description="Exponent of the GNMT length penalty, `mean` or `none`; null: the model's default."
    )
    glossary: dict[str, str | list[str] | None] = Field(
        {}, description="Source terms and their translations: one form, several forms, or null to keep the term."
    )
    constraints: list[str | list[str]] = Field(
        [], description="Phrases that the translation of a sentence must contain; each one form or several forms."
    )
    keep: list[Literal["all", "number", "url", "email", "emoji", "markup", "placeholder"]] = Field(
        [], description="Spans that are kept byte for byte."
    )
    guard: bool = Field(False, description="Search again if a translation repeats itself, is empty, and so on.")
    alignment: bool = Field(False, description="Return which source words the words of the translation are aligned to.")
    stream: bool = Field(
        False,
        description="Return one JSON line per sentence as soon as it is translated, and one for the whole text at the "
        "end.",
    )


class Hypothesis(BaseModel):
    """A translation of a sentence. score: the value that ranks hypotheses; log_probability: in nats."""

    text: str
    score: float
    log_probability: float


class Sentence(BaseModel):
    """A sentence with its translations, best first.

    alignment: links (i, j) between word i of the source and word j of the best translation; words are separated by
    whitespace and counted from 0.
    """

    source: str
    hypotheses: list[Hypothesis]
    finished: bool
    alignment: list[tuple[int, int]] | None = None


class Translation(BaseModel):
    """A translation of a text, alternatives, and the text's sentences."""

    text: str
    alternatives: list[str]
    sentences: list[Sentence]


class TranslatedV1(BaseModel):
    """The translations of all texts, in order."""

    source: str
    target: str
    detected: Detected | None = None
    translations: list[Translation]


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """POST /v1/translate."""
    router, limits = APIRouter(prefix="/v1", tags=["dragoman"]), config.limits

    @router.post("/translate", response_model=TranslatedV1, **openapi(TranslateV1Fields, form=False, streams=True))
    async def translate(request: Request) -> Any:
        """Translate texts, with n-best lists, scores, alignments, a glossary, constraints and copied text."""
        fields, caller = await gate.enter(request, TranslateV1Fields)
        texts = [fields.text] if isinstance(fields.text, str) else fields.text
        _check(fields, texts, limits)
        detected = None
        if fields.source == AUTO:
            sample = next((text for text in texts if text.strip()), "")
            detected = detect_language(service.detector, sample, service.directions.sources)
        source = detected.language if detected else known_code(fields.source, service.directions.sources)
        target = known_code(fields.target, service.directions.all_targets)
        job = TranslationJob(
            texts,
            source,
            target,
            format_of(fields.format),
            fields.nbest - 1,
            _settings(fields),
            fields.alignment,
            caller.reserve,
        )

        def whole(texts: list[TranslatedText]) -> TranslatedV1:
            return TranslatedV1(
                source=source, target=target, detected=detected, translations=[_translation(each) for each in texts]
            )

        if fields.stream:
            service.check(job)
            return StreamingResponse(_lines(service, job, whole), media_type="application/x-ndjson")
        return whole(await while_connected(request, service.translate(job)))

    return router


def _check(fields: TranslateV1Fields, texts: list[str], limits: LimitsConfig) -> None:
    check_texts(texts, limits, "text")
    for name, value, most in (
        ("nbest", fields.nbest, limits.alternatives + 1),
        ("beam", fields.beam or 1, limits.beam),
        ("glossary", len(fields.glossary), limits.glossary_terms),
        ("constraints", len(fields.constraints), limits.constraints),
    ):
        if value > most:
            raise Refusal(f"Invalid request: {name}: at most {most}")


def _settings(fields: TranslateV1Fields) -> dict[str, Any]:
    given = {
        "beam": fields.beam,
        "length_penalty": fields.length_penalty,
        "glossary": fields.glossary or None,
        "constraints": fields.constraints,
        "keep": list(KINDS) if "all" in fields.keep else fields.keep,
        "guard": fields.guard,
    }
    return {name: value for name, value in given.items() if value not in (None, [], False)}


async def _lines(service: Service, job: TranslationJob, whole: Any) -> AsyncIterator[str]:
    """Yield each sentence as it is translated, in any order, with the indices of text and sentence, then the whole."""
    sentences: asyncio.Queue[tuple[int, int, str] | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def on_sentence(text: int, sentence: int, translation: str) -> None:
        loop.call_soon_threadsafe(sentences.put_nowait, (text, sentence, translation))

    work = asyncio.ensure_future(service.translate(job, on_sentence))
    work.add_done_callback(lambda _: sentences.put_nowait(None))
    try:
        while (each := await sentences.get()) is not None:
            text, sentence, translation = each
            yield _line({"text": text, "sentence": sentence, "translation": translation})
        try:
            yield whole(work.result()).model_dump_json() + "\n"
        except Refusal as error:
            yield _line({"error": error.message})
    finally:
        work.cancel()


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _translation(text: TranslatedText) -> Translation:
    return Translation(
        text=text.text, alternatives=list(text.alternatives), sentences=[_sentence(each) for each in text.sentences]
    )


def _sentence(sentence: TranslatedSentence) -> Sentence:
    return Sentence(
        source=sentence.source,
        hypotheses=[Hypothesis(text=a, score=b, log_probability=c) for a, b, c in sentence.hypotheses],
        finished=sentence.finished,
        alignment=None if sentence.alignment is None else list(sentence.alignment),
    )
