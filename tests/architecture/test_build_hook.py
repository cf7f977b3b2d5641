"""The build hook of wheels, without compiling anything."""

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from repository import ROOT

pytest.importorskip("hatchling")


@pytest.fixture
def hook_module() -> ModuleType:
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def built(module: ModuleType, version: str = "standard") -> dict[str, Any]:
    """Return what the hook adds to a wheel."""
    hook = SimpleNamespace(root=str(ROOT), app=SimpleNamespace(display_warning=lambda _: None), _folder=None)
    data: dict[str, Any] = {"force_include": {}}
    module.EngineBuildHook.initialize(hook, version, data)
    module.EngineBuildHook.finalize(hook, version, data, "")
    return data


def test_the_newest_version_of_the_c_library_names_the_platform(hook_module: ModuleType) -> None:
    library = b"\x7fELF\0GLIBC_2.2.5\0x\0GLIBC_2.34\0GLIBC_2.4\0pow\0GLIBCXX_3.4\0"
    assert hook_module.glibc_version(library) == (2, 34)


@pytest.mark.parametrize(("versions", "platform"), [(b"\0GLIBC_2.28\0", "2_28"), (b"\0GLIBC_2.2.5\0", "2_17")])
def test_a_wheel_with_engines(
    versions: bytes, platform: str, hook_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(compiler: ModuleType, processor: str, folder: Path) -> list[Path]:
        path = folder / compiler.library_name(compiler.INSTRUCTION_SETS[-1], processor=processor)
        path.write_bytes(versions)
        return [path]

    monkeypatch.setattr(hook_module, "_compile", compiled)
    monkeypatch.setattr(hook_module, "_has_glibc", lambda: True)
    monkeypatch.setenv("DRAGOMAN_ENGINES", "aarch64")
    data = built(hook_module)
    assert data["tag"] == f"py3-none-manylinux_{platform}_aarch64" and data["pure_python"] is False
    added = list(data["force_include"].values())
    assert added[0] == "dragoman/recipe_files" and "/native/prebuilt/engine-portable-" in added[1]
    assert not Path(list(data["force_include"])[1]).exists(), "temporary files are deleted"


def test_wheels_without_engines(hook_module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_ENGINES", "none")
    assert list(built(hook_module)["force_include"].values()) == ["dragoman/recipe_files"]
    assert built(hook_module, "editable") == {"force_include": {}}
    monkeypatch.setattr(hook_module, "_has_glibc", lambda: False)
    monkeypatch.setenv("DRAGOMAN_ENGINES", "")
    assert "tag" not in built(hook_module)
    monkeypatch.setenv("DRAGOMAN_ENGINES", "x86_64")
    with pytest.raises(SystemExit, match="only Linux with the GNU C library"):
        built(hook_module)


def script(path: Path, output: str) -> str:
    path.write_text(f"#!/bin/sh\necho {output}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("target", "processor", "chosen"),
    [
        ("x86_64-linux-gnu", "x86_64", "cc --flag"),
        ("x86_64-linux-gnu", "aarch64", "aarch64-linux-gnu-gcc"),
        ("aarch64-linux-gnu", "aarch64", "cc --flag"),
        ("aarch64-linux-gnu", "x86_64", "x86_64-linux-gnu-gcc"),
        ("", "aarch64", "cc --flag"),
    ],
)
@pytest.mark.parametrize("is_given", [True, False])
def test_a_compiler_for_another_processor_is_not_used(
    target: str,
    processor: str,
    chosen: str,
    is_given: bool,
    hook_module: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = script(tmp_path / "cc", target)
    compiler = hook_module._compiler(str(ROOT))
    if is_given:
        monkeypatch.setenv("CC", f"{program} --flag")
    else:
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setattr(compiler, "compilers", lambda: [(program, "--flag")])
    used = []
    monkeypatch.setattr(compiler, "compile_library", lambda command, *_, **__: used.append(command) or b"")
    (tmp_path / "out").mkdir()
    hook_module._compile(compiler, processor, tmp_path / "out")
    assert {" ".join(command).replace(str(tmp_path) + "/", "") for command in used} == {chosen}


def test_a_compiler_that_does_not_exist_is_reported(
    hook_module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    compiler = hook_module._compiler(str(ROOT))
    with pytest.raises(compiler.CompilerError, match="no-such-compiler"):
        hook_module._compile(compiler, "aarch64", tmp_path)
