"""The routes that clients of LibreTranslate know, written from its public interface."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from dragoman.documents.formats.union import format_of
from dragoman.serving.config import ServeConfig
from dragoman.serving.detection.languages import known_code, name_of
from dragoman.serving.errors import Forbidden, Refusal
from dragoman.serving.http.files import SUPPORTED
from dragoman.serving.http.gate import Gate, Keyed
from dragoman.serving.http.requests import AUTO, Detected, best_of, check_texts, described, while_connected
from dragoman.serving.service import Service, TranslationJob
from dragoman.serving.suggestions import Suggestions


class TranslateFields(Keyed):
    """Text to translate."""

    q: str | list[str] = Field(description="A text, or a list of texts.")
    source: str = Field(description="Code of the source language, or auto.")
    target: str = Field(description="Code of the target language.")
    format: Annotated[Literal["text", "html"], BeforeValidator(lambda value: value or "text")] = Field(
        "text", description="Format of the texts; with html, tags keep their positions."
    )
    alternatives: Annotated[int, BeforeValidator(lambda value: 0 if value == "" else value)] = Field(
        0, ge=0, description="Number of alternative translations per text."
    )


class DetectFields(Keyed):
    """A text of an unknown language."""

    q: str


class SuggestFields(Keyed):
    """A suggested translation."""

    q: str = Field(description="A text.")
    s: str = Field(description="The suggested translation.")
    source: str = Field(description="Code of the source language.")
    target: str = Field(description="Code of the target language.")


class Success(BaseModel):
    """It is done."""

    success: bool = True


class Translated(BaseModel):
    """One for a text, a list for a list."""

    translatedText: str | list[str]
    detectedLanguage: Detected | list[Detected] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class Language(BaseModel):
    """A language that can be translated, and into which."""

    code: str
    name: str
    targets: list[str]


class Settings(BaseModel):
    """What a page in a browser needs to know."""

    apiKeys: bool
    keyRequired: bool
    charLimit: int
    frontendTimeout: int
    filesTranslation: bool
    supportedFilesFormat: list[str]
    suggestions: bool
    language: dict[str, dict[str, str]]


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """POST /translate, /detect and /suggest, GET /languages and /frontend/settings.

    Raises ConfigError where suggestions are to be kept and cannot be.
    """
    router, limits = APIRouter(tags=["LibreTranslate"]), config.limits
    kept = config.suggestions
    suggestions = None if kept is None else Suggestions(kept, limits.suggestions_bytes)

    @router.post("/translate", response_model=Translated, **described(TranslateFields))
    async def translate(request: Request) -> Response:
        """Translate a text, or several of one language."""
        fields, caller = await gate.enter(request, TranslateFields)
        directions, detector = service.directions, service.detector
        texts = [fields.q] if isinstance(fields.q, str) else fields.q
        check_texts(texts, limits)
        if fields.alternatives > limits.alternatives:
            raise Refusal(f"Invalid request: alternatives: at most {limits.alternatives}")
        target = known_code(fields.target, directions.all_targets)
        by_source: dict[str, list[int]] = {}
        detected = []
        for place, text in enumerate(texts):
            source = known_code(fields.source, directions.sources)
            if fields.source == AUTO:
                found = best_of(detector, text, directions.sources)
                detected.append(found)
                source = found.language
            by_source.setdefault(source, []).append(place)
        done: list[Any] = [None] * len(texts)
        for source, places in by_source.items():
            some, format = [texts[place] for place in places], format_of(fields.format)
            job = TranslationJob(some, source, target, format, fields.alternatives, reserve=caller.reserve)
            translated = await while_connected(request, service.translate(job))
            for place, each in zip(places, translated, strict=True):
                done[place] = each
        alone = isinstance(fields.q, str)
        alternatives = [list(each.alternatives) for each in done] if fields.alternatives else None
        answer = Translated(
            translatedText=done[0].text if alone else [each.text for each in done],
            detectedLanguage=None if not detected else detected[0] if alone else detected,
            alternatives=alternatives[0] if alternatives and alone else alternatives,
        )
        # written here: the library would check it once more, which takes a tenth of the time that a request takes it
        return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")

    @router.post("/detect", **described(DetectFields))
    async def detect(request: Request) -> list[Detected]:
        """Which language a text is written in, the likeliest first."""
        fields, _ = await gate.enter(request, DetectFields)
        check_texts([fields.q], limits)
        found = [Detected(confidence=each, language=code) for code, each in service.detector.detect(fields.q)]
        # clients look at the first without asking whether there is one
        return found or [best_of(service.detector, fields.q, service.directions.sources)]

    @router.post("/suggest", **described(SuggestFields))
    async def suggest(request: Request) -> Success:
        """Propose a better translation."""
        fields, _ = await gate.enter(request, SuggestFields)
        if suggestions is None:
            raise Forbidden("this server takes no suggestions")
        check_texts([fields.q, fields.s], limits)
        if not fields.q.strip() or not fields.s.strip():
            raise Refusal("Invalid request: q and s: a text and its translation")
        directions = service.directions
        source, target = (
            known_code(fields.source, directions.sources),
            known_code(fields.target, directions.all_targets),
        )
        directions.route(source, target)
        await asyncio.to_thread(suggestions.keep, source, target, fields.q, fields.s)
        return Success()

    @router.get("/languages")
    async def languages(request: Request) -> list[Language]:
        """What can be translated, and into what."""
        await gate.enter(request, Keyed)
        directions = service.directions
        return [
            Language(code=source, name=name_of(source), targets=list(directions.targets(source)))
            for source in directions.sources
        ]

    @router.get("/frontend/settings")
    async def settings(request: Request) -> Settings:
        """What a page in a browser needs to know."""
        await gate.enter(request, Keyed)
        directions = service.directions
        source = directions.sources[0]
        first = directions.targets(source)[0]
        return Settings(
            apiKeys=config.access.keys is not None,
            keyRequired=config.access.keys is not None,
            charLimit=limits.characters,
            frontendTimeout=500,
            filesTranslation=True,
            supportedFilesFormat=list(SUPPORTED),
            suggestions=suggestions is not None,
            language={
                "source": {"code": AUTO, "name": "Auto"},
                "target": {"code": first, "name": name_of(first)},
            },
        )

    return router
