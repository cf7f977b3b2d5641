"""Messages are records of standard loggers, and appear on the console unless a program handles them itself."""

import logging
from collections.abc import Iterator

import pytest

from dragoman.base.log import info, quietly, warn


class Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A handler that is removed from all loggers after the test."""
    logger, handler = logging.getLogger("dragoman"), Collector()
    yield handler
    logger.removeHandler(handler)
    logging.root.removeHandler(handler)


def test_without_handlers_messages_are_printed(collector: Collector, capsys: pytest.CaptureFixture[str]) -> None:
    info("[bold]one[/bold] 100%")
    warn("two %s")
    with quietly():
        info("hidden")
        warn("three")
    assert capsys.readouterr() == ("", "[bold]one[/bold] 100%\nwarning: two %s\nwarning: three\n")


def test_a_program_with_a_handler_receives_records_instead(
    collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("dragoman").addHandler(collector)
    info("one")
    warn("two")
    with quietly():
        info("hidden")
    assert capsys.readouterr() == ("", "")
    levels = [(record.levelname, record.getMessage(), record.filename) for record in collector.records]
    assert levels == [("INFO", "one", "test_log.py"), ("WARNING", "two", "test_log.py")]


def test_the_logger_is_the_module_that_reports(collector: Collector) -> None:
    logging.getLogger("dragoman").addHandler(collector)
    namespace = {"__name__": "dragoman.training.run.loop", "warn": warn}
    exec("def report():\n    warn('slow')", namespace)
    namespace["report"]()  # type: ignore[operator]
    info("from a program")
    assert [record.name for record in collector.records] == ["dragoman.training.run.loop", "dragoman"]


def test_the_level_of_a_logger_selects_messages(collector: Collector, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("dragoman")
    logger.setLevel(logging.WARNING)
    try:
        info("one")
        warn("two")
    finally:
        logger.setLevel(logging.INFO)
    assert capsys.readouterr().err == "warning: two\n"


def test_handlers_of_the_root_logger_change_nothing(collector: Collector, capsys: pytest.CaptureFixture[str]) -> None:
    """Imported packages add handlers to it."""
    logging.root.addHandler(collector)
    info("one")
    assert capsys.readouterr().err == "one\n" and not collector.records
