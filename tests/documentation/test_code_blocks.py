"""Code blocks of pages are run in order, and failing commands, wrong outputs and wrong names are noticed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from code_blocks import Command, blocks, commands, form_faults, inputs, matches
from page_commands import PageCommands, PageFault
from page_inputs import INPUTS, provide

Run = Callable[[str], int]


@pytest.fixture
def run(address: str, tmp_path: Path) -> Iterator[Run]:
    """Runs the blocks of a page in the folder `page` of tmp_path."""
    (tmp_path / "page").mkdir()
    with PageCommands(address, tmp_path / "page", tmp_path / "scratch", seconds=20) as commands:
        yield commands.run_page


def block(language: str, *lines: str) -> str:
    return "\n".join([f"```{language}", *lines, "```", ""])


def test_blocks_are_run_in_order_in_one_shell(run: Run, tmp_path: Path) -> None:
    page = [
        block("bash", "name=value", "mkdir below", "cd below", "printf 'a\\nb\\n' > file"),
        "text\n",
        block("text", "false"),
        block("console", "$ cat file", "a", "b", "$ echo $name", "value"),
        block("python", "from pathlib import Path", "count = 3", "Path('written').write_text('x')"),
        block("python", ">>> count + 1", "4", ">>> Path('below/file').read_text().split()", "['a', 'b']"),
        "- item\n  ```bash\n  test -e ../written\n  ```\n",
    ]
    assert run("".join(page)) == 5
    assert (tmp_path / "page" / "below" / "file").is_file()


def test_dragoman_runs_as_in_a_terminal(run: Run) -> None:
    page = [
        block("console", "$ dragoman --version", "dragoman …", "$ dragoman settings train.seed | grep -c seed", "…"),
        block("console", "$ dragoman translate nowhere < /dev/null || echo code $?", "error: …nowhere…", "…", "code …"),
        block("console", "$ python -c 'import dragoman, sys; print(sys.argv[1:])' a b", "['a', 'b']"),
        block("console", "$ echo 'print(2 + 3)' > file.py", "$ python file.py", "5"),
    ]
    assert run("".join(page)) == 4


def test_a_server_runs_in_the_background(
    address: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = [
        block("bash", "dragoman serve runs/random &", "server=$!"),
        block("bash", "curl --silent --retry 40 --retry-delay 1 --retry-connrefused localhost:5000/health > answer"),
        block("bash", "kill $server", "wait $server || test $? = 143"),
        block("console", "$ curl --silent localhost:5000/health || echo ended", "ended"),
    ]
    provide(["random-model"], tmp_path, address, tmp_path_factory)
    with PageCommands(address, tmp_path, tmp_path / "scratch") as commands:
        assert commands.run_page("".join(page)) == 4
    assert (tmp_path / "answer").stat().st_size > 0


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (block("bash", "false"), "line 2: exit code 1"),
        (block("bash", "true") + block("bash", "true", "dragoman translate nowhere < /dev/null", "true"), "line 5"),
        (block("bash", "dragoman translate nowhere < /dev/null | cat"), "exit code"),
        (block("bash", "exit 3"), "exit code 3"),
        (block("console", "$ echo a", "b"), "the page shows\nb"),
        (block("console", "$ echo a"), "prints\na"),
        (block("console", "$ true", "$ false"), "line 3"),
        (block("console", "$ dragoman --version", "dragoman 0.0"), "prints\ndragoman"),
        (block("python", "x = 1", "raise ValueError(x)"), "line 3, in <module>"),
        (block("python", "import sys", "sys.exit(1)"), "SystemExit"),
        (block("python", ">>> 1 + 1", "3"), "Expected:"),
    ],
)
def test_faults_are_noticed(run: Run, page: str, reason: str) -> None:
    with pytest.raises(PageFault) as fault:
        run(page)
    assert reason in str(fault.value)


def test_a_block_that_does_not_end_is_noticed(address: str, tmp_path: Path) -> None:
    with (
        PageCommands(address, tmp_path, tmp_path / "scratch", seconds=0.3) as commands,
        pytest.raises(PageFault, match=r"not finished after 0\.3 seconds"),
    ):
        commands.run_page(block("bash", "sleep 60"))


def test_the_page_has_no_undeclared_corpora(run: Run) -> None:
    assert run(block("console", "$ echo ${DRAGOMAN_DATA-none}", "none")) == 1


def test_ports_are_replaced(address: str, tmp_path: Path) -> None:
    with PageCommands(address, tmp_path, tmp_path / "scratch") as commands:
        first = commands.with_ports("http://localhost:5000/x")
        assert first != "http://localhost:5000/x"
        assert commands.with_ports("http://127.0.0.1:5000/x").rpartition(":")[2] == first.rpartition(":")[2]
        assert commands.with_ports("--port 8001 and 5000 lines") != "--port 8001 and 5000 lines"
        assert commands.with_ports("5000 lines") == "5000 lines"


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (block("bash", "x"), None),
        (block("", "x"), "line 2: a block without a language"),
        (block("sh", "x"), "line 2: an sh block"),
        ("<!-- not run: needs root -->\n" + block("sh", "x"), None),
        (block("console", "x"), "begin with"),
        (block("text", "dragoman train"), "a text block with a command"),
        ("<!-- with: corpus -->\n", None),
        ("<!-- with: corpus ghost -->\n", "ghost"),
    ],
)
def test_the_form_of_blocks_is_checked(page: str, fault: str | None) -> None:
    found = form_faults(page, {"corpus"})
    assert found == [] if fault is None else len(found) == 1 and fault in found[0]


@pytest.mark.parametrize(
    ("shown", "output", "equal"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "a  \n\n", True),
        ("a", "a\nb\n", False),
        ("", "", True),
        ("", "a", False),
        ("took … s", "took 1.5 s\n", True),
        ("took … s", "took\n1.5 s\n", False),
        ("a\n…\nd", "a\nb\nc\nd\n", True),
        ("a\n…\nd", "a\nd", True),
        ("a\n…\nd", "a\nb\nc", False),
        ("…", "a\nb", True),
        ("a (b)", "a (b)", True),
    ],
)
def test_outputs_are_compared(shown: str, output: str, equal: bool) -> None:
    assert matches(shown, output) == equal


def test_commands_of_a_console_block() -> None:
    page = block("console", "$ one \\", "  two", "out", "$ cat <<EOF", "> in", "> EOF", "in", "more", "$ three")
    assert list(commands(next(blocks(page)))) == [
        Command("one \\\n  two\n", "out", 2),
        Command("cat <<EOF\nin\nEOF\n", "in\nmore", 5),
        Command("three\n", "", 10),
    ]


def test_names_of_inputs() -> None:
    assert inputs("# Title\n<!-- with: corpus translator -->\n\ntext") == ["corpus", "translator"]
    assert inputs("text <!-- with: corpus -->") == []


@pytest.mark.commands
@pytest.mark.parametrize("name", INPUTS)
def test_every_input_can_be_made(
    name: str, address: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    provide([name], tmp_path, address, tmp_path_factory)
    assert [path for path in INPUTS[name].paths if not (tmp_path / path).exists()] == []
