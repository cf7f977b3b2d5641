"""The files of the page, and their headers."""

import re

import pytest
from scripted_server import asked, served, shouting

from dragoman.addons.serving.http.routes.page import files

PAGE = files("dragoman.addons.serving") / "page"


def got(*paths: str, **headers: str) -> list:
    async def work(client):  # type: ignore[no-untyped-def]
        return [await client.get(path, headers=headers) for path in paths]

    with served({"en-de": shouting}) as service:
        return asked(service, work)  # type: ignore[no-any-return]


def test_everything_that_the_page_loads_exists() -> None:
    (page,) = got("/")
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    names = set(re.findall(r'(?:src|href)="(page/[^"]+)"', page.text))
    modules = [path for path in PAGE.iterdir() if path.name.endswith(".js")]
    names |= {f"page/{name}" for path in modules for name in re.findall(r'from "\./([^"]+)"', path.read_text("utf-8"))}
    answers = dict(zip(names, got(*(f"/{name}" for name in names)), strict=True))
    assert len(answers) > 10 and {answer.status_code for answer in answers.values()} == {200}
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for name, answer in answers.items():
        assert answer.headers["content-type"].startswith(kinds[name[name.rfind(".") :]])
    assert {f"page/{path.name}" for path in modules} <= set(names)


def test_nothing_in_the_page_needs_what_its_policy_forbids() -> None:
    for path in (path for path in PAGE.iterdir() if path.is_file()):
        text = path.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
        assert not re.search(r"https?://(?!www\.w3\.org/)", text)
        if path.name.endswith((".html", ".svg")):
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)


def test_headers_of_the_page_and_of_its_parts() -> None:
    for answer in got("/", "/page/page.js", "/page/icon.svg"):
        policy = answer.headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'" and "script-src 'self'" in policy and "form-action 'none'" in policy
        assert not re.search(r"unsafe|\*|data:|https?:", answer.headers["content-security-policy"])
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-cache"


def test_unchanged_files_are_not_sent_again() -> None:
    (first,) = got("/")
    (second,) = got("/", **{"If-None-Match": first.headers["etag"]})
    assert second.status_code == 304 and second.content == b""
    (third,) = got("/page/page.js", **{"If-None-Match": first.headers["etag"]})
    assert third.status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/page/",
        "/page/none.js",
        "/page/../http/page.py",
        "/page/%2e%2e%2fconfig.py",
        "/page/..%5cconfig.py",
        "/page//etc/passwd",
        "/page/index.html%00.js",
        "/page/__init__.py",
    ],
)
def test_no_other_files_are_served(path: str) -> None:
    (answer,) = got(path)
    assert answer.status_code == 404 and set(answer.json()) == {"error"}
