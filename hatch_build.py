"""The build hook of wheels, and the hook of the package's metadata.

The build hook adds the recipes and, if there is a C compiler, the C libraries for all processors.

The environment variable DRAGOMAN_ENGINES decides for which processors the libraries are compiled:

- not set: for this one, if it is possible; otherwise the wheel contains no engine and is for any platform;
- `x86_64`, `aarch64`: for these processors, with a cross compiler if $CC or the installed one does not compile for
  them; failure is an error;
- `none`: for none.

A wheel with engines is for Linux and, as the name of its platform says, for the versions of the GNU C library that its
engines were linked for, and newer ones (PEP 600).

The metadata hook makes the links of README.md absolute, because the page of a package index cannot follow others. The
environment variable DRAGOMAN_REPOSITORY names the address of the repository, such as https://github.com/OWNER/dragoman.
"""

import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_NATIVE = "dragoman/native"
_OLDEST = (2, 17)  # the oldest version for which installers know a platform, manylinux2014


class EngineBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds recipes and compiled engines to a wheel, and sets its platform."""

    PLUGIN_NAME = "custom"
    _folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files. Editable installations use those of the source tree instead."""
        if version == "editable":
            return
        build_data["force_include"][str(Path(self.root) / "recipes")] = "dragoman/recipe_files"
        compiler, wanted = _compiler(self.root), os.environ.get("DRAGOMAN_ENGINES", "")
        if wanted and wanted != "none" and not _has_glibc():
            raise SystemExit(f"DRAGOMAN_ENGINES={wanted}: only Linux with the GNU C library can build this wheel")
        if wanted == "none" or not _has_glibc():
            return
        processor = wanted or compiler.machine()
        self._folder = tempfile.mkdtemp()
        try:
            libraries = _compile(compiler, processor, Path(self._folder))
        except compiler.CompilerError as error:
            if wanted:
                raise SystemExit(f"DRAGOMAN_ENGINES={wanted}: {error}") from None
            self.app.display_warning(f"The wheel contains no native engine, which is then compiled when used: {error}")
            return
        for library in libraries:
            build_data["force_include"][str(library)] = f"{_NATIVE}/prebuilt/{library.name}"
        major, minor = max(_OLDEST, *(glibc_version(library.read_bytes()) for library in libraries))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{major}_{minor}_{processor}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class RepositoryMetadataHook(MetadataHookInterface):
    """Adds the description of the package, from README.md, and its URLs."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `readme` and `urls`. Without the address of the repository, links stay relative, and URLs are absent."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("DRAGOMAN_REPOSITORY", "").rstrip("/")
        metadata["urls"] = {}
        if repository:
            readme = absolute_links(readme, repository)
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/main/docs/index.md",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


def absolute_links(markdown: str, repository: str) -> str:
    """Make relative links of a Markdown text absolute: those of pictures lead to the file, others to its page."""

    def replace(match: re.Match[str]) -> str:
        kind = "raw" if match[1] else "blob"
        return f"{match[1]}[{match[2]}]({repository}/{kind}/main/{match[3]}"

    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)", replace, markdown)


def glibc_version(library: bytes) -> tuple[int, int]:
    """Return the newest version of the GNU C library whose symbols a library uses, or (0, 0) if it uses none."""
    versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)", library)
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def _has_glibc() -> bool:
    return sys.platform == "linux" and "CS_GNU_LIBC_VERSION" in os.confstr_names


def _compile(compiler: ModuleType, processor: str, folder: Path) -> list[Path]:
    """Compile each library for all instruction sets of a kind of processor. Raises the compiler's CompilerError."""
    command = _command(compiler, processor)

    def one(source: Any, instructions: Any) -> Path:
        temporary = folder / f"{source.name}-{instructions.name}"
        temporary.mkdir()
        library: Path = folder / compiler.library_name(instructions, processor=processor, source=source)
        library.write_bytes(compiler.compile_library(command, instructions, temporary, source=source))
        return library

    pairs = itertools.product(compiler.LIBRARIES, compiler.compilable(processor))
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(one, *zip(*pairs, strict=True)))


def _command(compiler: ModuleType, processor: str) -> Sequence[str]:
    """Return the command of a compiler for this kind of processor.

    It is $CC, or an installed compiler, unless this compiles for another processor. Raises CompilerError if none is
    installed.
    """
    if not (commands := compiler.compilers()):
        raise compiler.CompilerError("no C compiler was found")
    command: Sequence[str] = commands[0]
    try:
        done = subprocess.run([*command, "-dumpmachine"], capture_output=True, text=True, check=False)
    except OSError:  # the compilation reports it
        return command
    target = done.stdout.partition("-")[0].strip()
    return command if target in ("", processor) else (f"{processor}-linux-gnu-gcc",)


def _compiler(root: str) -> ModuleType:
    """Import the package's module that compiles the engine. The package itself cannot be imported while it is built."""
    specification = importlib.util.spec_from_file_location("engine_compiler", f"{root}/src/{_NATIVE}/compiler.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["engine_compiler"] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module
