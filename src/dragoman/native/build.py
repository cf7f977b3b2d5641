"""Finds compiled libraries in the wheel or in a cache folder, or compiles them at first use."""

import ctypes
import os
from pathlib import Path

from dragoman.base.errors import ResourceError
from dragoman.base.files import move_into, remove_stale_temporaries
from dragoman.base.log import info
from dragoman.native.cache_folders import PREBUILT, cache_folders, check_owner, create
from dragoman.native.compiler import (
    ENGINE,
    CompilerError,
    InstructionSet,
    LibrarySource,
    available,
    compile_library,
    compilers,
    is_intact,
    library_name,
)


class NoLibraryError(ResourceError):
    """A library can neither be loaded nor compiled on this machine."""


class NoCompilerError(NoLibraryError):
    """No C compiler is installed, or it cannot compile the sources."""


def best_library(source: LibrarySource = ENGINE) -> Path:
    """Return the path of the library for the best instruction set that the processor and the compiler support.

    If no instruction set has a library, raises the error of `compiled_library` for the best instruction set.
    """
    errors = []
    for instructions in available():
        try:
            return compiled_library(instructions, source)
        except NoLibraryError as error:
            errors.append(error)
    raise errors[0]


def compiled_library(instructions: InstructionSet, source: LibrarySource = ENGINE) -> Path:
    """Load the library for an instruction set and return its path. The library is compiled if necessary.

    A library that is damaged, or was compiled by another version or for another type of processor, is not used. Of the
    folders in `cache_folders`, the first usable one is chosen. Raises NoLibraryError if no folder can be used, and
    NoCompilerError if the library cannot be compiled.
    """
    chosen = os.environ.get("CC", "")
    if (path := _existing(instructions, chosen, source)) is not None:
        return path
    if not compilers():
        raise NoCompilerError(
            f"{source.title} is compiled when it is first used, but no C compiler was found: install one (Debian, "
            f"Ubuntu: apt install gcc) or a wheel of dragoman that contains compiled libraries{_alternative(source)}"
        )
    name = library_name(instructions, chosen, source=source)
    content: bytes | None = None
    problems = []
    for folder in cache_folders():
        try:
            create(folder)
            remove_stale_temporaries(folder, min_age=60)
            with move_into(folder, name) as temporary:
                if content is None:
                    content = _compiled(instructions, temporary, source)
                (temporary / name).write_bytes(content)
                (temporary / name).chmod(0o644)  # not writable by others, whatever the umask is
            load(folder / name, source)
            return folder / name
        except NoCompilerError:
            raise
        except (ResourceError, OSError) as error:
            problems.append(str(error))
    raise NoLibraryError(
        f"there is no folder for the library of {source.title} ({'; '.join(problems)}): set XDG_CACHE_HOME to a folder "
        f"that is writable and not mounted noexec{_alternative(source)}"
    )


def load(path: Path, source: LibrarySource) -> ctypes.CDLL:
    """Load a compiled library. Raises ResourceError if it cannot be loaded."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ResourceError(f"cannot load the library of {source.title}, {path} ({error})") from None


def _alternative(source: LibrarySource) -> str:
    """Return the remedy as the end of a sentence."""
    return f", or {source.remedy}" if source.remedy else ""


def _existing(instructions: InstructionSet, chosen: str, source: LibrarySource) -> Path | None:
    """Return the path of a compiled library that can be loaded."""
    for folder in (PREBUILT, *cache_folders()):
        path = folder / library_name(instructions, "" if folder == PREBUILT else chosen, source=source)
        try:
            content = path.read_bytes()
            if folder != PREBUILT:  # which is as trustworthy as the rest of the package
                check_owner(path)
                check_owner(folder)
            if is_intact(content):
                load(path, source)
                return path
        except (ResourceError, OSError):
            continue
    return None


def _compiled(instructions: InstructionSet, folder: Path, source: LibrarySource) -> bytes:
    """Compile a library and return its content. folder: contains temporary files. Raises NoCompilerError, OSError."""
    reasons = []
    for compiler in compilers():
        try:
            content = compile_library(compiler, instructions, folder, source=source)
        except CompilerError as error:
            reasons.append(str(error))
        else:
            title = source.title.removeprefix("the ").capitalize()
            info(f"{title}: compiled for {instructions.name} with {compiler[0]}, once")
            return content
    raise NoCompilerError(f"{reasons[0]}: set CC to another compiler{_alternative(source)}")
