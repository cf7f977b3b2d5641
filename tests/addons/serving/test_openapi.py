"""The OpenAPI document: requests that schemathesis generates from it get the responses that it describes."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from scripted_server import served, shouting

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.http.application import Application
from dragoman.addons.serving.http.metrics import Metrics


@pytest.fixture(scope="module")
def described() -> Iterator[Any]:
    with served({"en-de": shouting}, host="0.0.0.0") as service:
        config = service.config  # type: ignore[attr-defined]
        app = Application(service, Access(config.access), config, Metrics())
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


def test_answers_are_as_described(described: Any) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    assert {each.path for each in operations} >= {"/translate", "/detect", "/languages", "/v1/translate", "/metrics"}
    for operation in operations:

        @settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(), known=st.booleans())
        def answered(case: schemathesis.Case, known: bool) -> None:
            if known and isinstance(case.body, dict) and "target" in case.body:
                case.body = {**case.body, "source": "en", "target": "de"}
            # the document may allow a language that is not served, and only valid data is generated
            case.call_and_validate(excluded_checks=[positive_data_acceptance, negative_data_rejection])

        answered()
