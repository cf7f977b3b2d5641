"""The routes of LibreTranslate, implemented from its public API documentation, for LibreTranslate clients."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from dragoman.addons.documents.formats.union import EXTENSIONS, get_format, is_available
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.errors import Forbidden, NotFound, RequestError
from dragoman.addons.serving.http.fields import Texts
from dragoman.addons.serving.http.gate import Gate, KeyFields
from dragoman.addons.serving.http.requests import (
    check_texts,
    describe_route,
    while_connected,
)
from dragoman.addons.serving.http.source_languages import AUTO, DetectedLanguage, SourceLanguage, source_languages
from dragoman.addons.serving.service.service import Service
from dragoman.addons.serving.service.text_batch import TextBatch
from dragoman.addons.serving.service.translation_job import TranslatedText, TranslationJob
from dragoman.addons.serving.suggestions import Suggestions
from dragoman.text.languages.names import language_name


class TranslateFields(KeyFields):
    """One or several texts to translate."""

    q: Texts = Field(description="A text, or a list of texts.")
    source: str = Field(description="Code of the source language, or auto.")
    target: str = Field(description="Code of the target language.")
    format: Annotated[Literal["text", "html"], BeforeValidator(lambda value: value or "text")] = Field(
        "text", description="Format of the texts. With html, tags are preserved."
    )
    alternatives: Annotated[int, BeforeValidator(lambda value: 0 if value == "" else value)] = Field(
        0, ge=0, description="Number of alternative translations per text."
    )


class DetectFields(KeyFields):
    """A text in an unknown language."""

    q: Texts = Field(description="A text, or a list of texts in one language.")


class SuggestFields(KeyFields):
    """A suggested translation."""

    q: str = Field(description="A text.")
    s: str = Field(description="The suggested translation.")
    source: str = Field(description="Code of the source language.")
    target: str = Field(description="Code of the target language.")


class Success(BaseModel):
    """The request succeeded."""

    success: bool = True


class Translated(BaseModel):
    """The translation of a text, or a list with the translations of several texts.

    errors: the error of each text of a list, if at least one could not be translated and was returned unchanged.
    """

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    alternatives: list[str] | list[list[str]] | None = None
    errors: list[str | None] | None = None


class Language(BaseModel):
    """A source language with its target languages."""

    code: str
    name: str
    targets: list[str]


class Settings(BaseModel):
    """Settings for web pages."""

    apiKeys: bool
    keyRequired: bool
    charLimit: int
    frontendTimeout: int
    filesTranslation: bool
    supportedFilesFormat: list[str]
    suggestions: bool
    language: dict[str, dict[str, str]]


def _response(
    fields: TranslateFields,
    texts: Sequence[str],
    sources: Sequence[SourceLanguage],
    results: Sequence[TranslatedText | RequestError],
) -> Translated:
    single = isinstance(fields.q, str)
    errors = [each.message if isinstance(each, RequestError) else None for each in results]
    translated = [
        text if isinstance(each, RequestError) else each.text for text, each in zip(texts, results, strict=True)
    ]
    alternatives = [[] if isinstance(each, RequestError) else list(each.alternatives) for each in results]
    detected = [each.detected for each in sources if each.detected is not None]
    return Translated(
        translatedText=translated[0] if single else translated,
        detectedLanguage=None if not detected else detected[0] if single else detected,
        alternatives=None if not fields.alternatives else alternatives[0] if single else alternatives,
        errors=errors if any(errors) else None,
    )


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """Return the routes POST /translate, /detect and /suggest, and GET /languages and /frontend/settings.

    Raises ConfigError if suggestions are enabled and cannot be stored.
    """
    router, limits = APIRouter(tags=["LibreTranslate"]), config.limits
    path = config.suggestions
    suggestions = None if path is None else Suggestions(path, limits.suggestions_bytes)

    @router.post("/translate", response_model=Translated, **describe_route(TranslateFields))
    async def translate(request: Request) -> Response:
        """Translate one or several texts."""
        fields, caller = await gate.enter(request, TranslateFields, translates=True)
        texts = [fields.q] if isinstance(fields.q, str) else fields.q
        check_texts(texts, limits)
        if fields.alternatives > limits.alternatives:
            raise RequestError(f"Invalid request: alternatives: at most {limits.alternatives}")
        target = service.directions.match(fields.target)
        sources = await source_languages(service, fields.source, target, texts, caller.name)
        job = TranslationJob(
            texts,
            fields.source,
            target,
            get_format(fields.format),
            fields.alternatives,
            reserve=caller.reserve,
            client=caller.name,
        )
        async with while_connected(request):
            batch = await TextBatch.resolve(service, job, [each.code for each in sources])
            results = await batch.translate(service)
        response = _response(fields, texts, sources, results)
        # serialised explicitly, because FastAPI would validate the model again, which takes 10% of the request time
        return Response(response.model_dump_json(exclude_none=True), media_type="application/json")

    @router.post("/detect", **describe_route(DetectFields))
    async def detect(request: Request) -> list[DetectedLanguage]:
        """Detect the language of a text, and return candidates, the most probable one first."""
        fields, caller = await gate.enter(request, DetectFields)
        texts = [fields.q] if isinstance(fields.q, str) else fields.q
        check_texts(texts, limits)
        text = "\n".join(texts)
        detections = await service.prepare(caller.name, partial(service.detector.detect, text), is_document=False)
        found = [DetectedLanguage(confidence=confidence, language=code) for code, confidence in detections]
        # clients expect at least one language
        if not service.directions.sources:
            raise NotFound("this server has no languages, because its models only predict labels or continue texts")
        return found or [DetectedLanguage(confidence=0, language=service.directions.sources[0])]

    @router.post("/suggest", **describe_route(SuggestFields))
    async def suggest(request: Request) -> Success:
        """Suggest a better translation."""
        fields, caller = await gate.enter(request, SuggestFields)
        if suggestions is None:
            raise Forbidden("this server does not accept suggestions")
        check_texts([fields.q, fields.s], limits)
        if not fields.q.strip() or not fields.s.strip():
            raise RequestError("Invalid request: q and s: must not be blank")
        directions = service.directions
        target = directions.match(fields.target)
        (detected,) = await source_languages(service, fields.source, target, [fields.q], caller.name)
        source = detected.code
        if not directions.route(source, target):
            raise RequestError("Invalid request: source and target: must be different languages")
        await asyncio.to_thread(suggestions.add, source, target, fields.q, fields.s)
        return Success()

    @router.get("/languages")
    async def languages(request: Request) -> list[Language]:
        """Return the source languages, each with its target languages. No key is required."""
        gate.check_key(request)
        directions = service.directions
        return [
            Language(code=source, name=language_name(source), targets=list(directions.targets(source)))
            for source in directions.sources
        ]

    @router.get("/frontend/settings")
    async def settings(request: Request) -> Settings:
        """Return settings for web pages. No key is required."""
        gate.check_key(request)
        directions = service.directions
        if not directions.sources:
            raise NotFound("this server has no languages, because its models only predict labels or continue texts")
        source = directions.sources[0]
        first = directions.targets(source)[0]
        return Settings(
            apiKeys=config.access.keys is not None,
            keyRequired=config.access.keys is not None,
            charLimit=limits.characters,
            frontendTimeout=500,
            filesTranslation=True,
            supportedFilesFormat=[each for each, format in EXTENSIONS.items() if is_available(format)],
            suggestions=suggestions is not None,
            language={
                "source": {"code": AUTO, "name": "Auto"},
                "target": {"code": first, "name": language_name(first)},
            },
        )

    return router
