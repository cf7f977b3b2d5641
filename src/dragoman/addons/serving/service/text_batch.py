"""`TextBatch`: the texts of a request, each of which is translated from its own language."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.addons.serving.access.quota import Reservation
from dragoman.addons.serving.errors import InternalError, RequestError
from dragoman.addons.serving.service.service import Service
from dragoman.addons.serving.service.translation_job import OnSentence, ResolvedJob, TranslatedText, TranslationJob


@dataclass(frozen=True)
class TextBatch:
    """The texts of a request, in groups that have the same language.

    job: the texts, and how to translate them. groups: the indices of the texts of each group, and the resolved job of
    the group, or the error if its direction is not served.
    """

    job: TranslationJob
    groups: Sequence[tuple[Sequence[int], ResolvedJob | RequestError]]

    @classmethod
    async def resolve(cls, service: Service, job: TranslationJob, sources: Sequence[str]) -> "TextBatch":
        """Return the batch of the texts of a job. sources: the code of the language of each text.

        Raises RequestError for inconsistent settings, and if none of the directions is served.
        """
        indices: dict[str, list[int]] = {}
        for index, code in enumerate(sources):
            indices.setdefault(code, []).append(index)
        groups: list[tuple[Sequence[int], ResolvedJob | RequestError]] = []
        for code, group in indices.items():
            try:
                route = service.directions.route(code, job.target)
            except RequestError as error:
                groups.append((group, error))
            else:
                part = replace(job, texts=[job.texts[index] for index in group], source=code)
                groups.append((group, await service.resolve(part, route)))
        errors = [resolved for _, resolved in groups if isinstance(resolved, RequestError)]
        if errors and len(errors) == len(groups):
            raise errors[0]
        return cls(job, groups)

    @property
    def is_unreliable(self) -> bool:
        """Whether one of the models was worse than simple systems at the end of its training."""
        resolved = [each for _, each in self.groups if not isinstance(each, RequestError)]
        return any(step.is_unreliable for each in resolved for step in each.steps)

    async def translate(
        self, service: Service, on_sentence: OnSentence | None = None
    ) -> list[TranslatedText | RequestError]:
        """Translate each text, in order. An error that concerns one of several texts replaces its translation.

        The texts of a group are translated together, or one by one if one of them has an error. on_sentence: as in
        `Service.translate`. Raises the errors of `Service.translate` that concern all texts.
        """
        results: dict[int, TranslatedText | RequestError] = {}
        waiting, charged = deque(self.groups), set[int]()
        while waiting:
            indices, resolved = waiting.popleft()
            if isinstance(resolved, RequestError):
                results |= dict.fromkeys(indices, resolved)
                continue
            try:
                found = await service.translate(
                    self._charging(resolved, indices, charged), _numbered(on_sentence, indices)
                )
            except Exception as error:
                if len(self.job.texts) == 1 or not _concerns_one_text(error):
                    raise
                if len(indices) > 1:
                    singles = [([index], resolved.only(number)) for number, index in enumerate(indices)]
                    waiting.extendleft(reversed(singles))
                else:
                    results[indices[0]] = _as_request_error(error)
            else:
                results |= zip(indices, found, strict=True)
        errors = [each for each in results.values() if isinstance(each, RequestError)]
        if errors and len(errors) == len(results):
            raise errors[0]
        return [results[index] for index in range(len(self.job.texts))]

    def _charging(self, resolved: ResolvedJob, indices: Sequence[int], charged: set[int]) -> ResolvedJob:
        """Return a job that adds its texts to `charged` when their tokens are reserved, which happens only once."""
        if (reserve := self.job.reserve) is None:
            return resolved

        def reserve_once(tokens: int) -> Reservation:
            reservation = reserve(tokens)
            charged.update(indices)
            return reservation

        return replace(
            resolved, job=replace(resolved.job, reserve=None if charged.issuperset(indices) else reserve_once)
        )


def _numbered(on_sentence: OnSentence | None, indices: Sequence[int]) -> OnSentence | None:
    """Return a listener to the sentences of some of the texts."""
    if on_sentence is None:
        return None
    return lambda text, sentence, translation: on_sentence(indices[text], sentence, translation)


def _concerns_one_text(error: Exception) -> bool:
    """Return whether an error may be caused by a single text: not an exceeded quota, a full queue or a lost client."""
    return not isinstance(error, RequestError) or error.status == RequestError.status


def _as_request_error(error: Exception) -> RequestError:
    return error if isinstance(error, RequestError) else InternalError(error)
