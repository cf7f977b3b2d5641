"""A config with any text and numbers equals the one read back from its YAML."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.settings.config import Config
from dragoman.base.settings.load import dump_settings, load_settings


class Everything(Config):
    text: str
    texts: dict[str, str]
    number: float | None
    whole: int
    flag: bool


# Lone surrogates are not Unicode text and cannot be written to a file.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
tricky = st.sampled_from(
    ["no", "1e5", "~", "", "${A}", "$$", "$${", "0x1", "1_0", "<<", "=", "2026-01-01", "1:30", "\u2028"]
)


@settings(max_examples=100)
@given(
    st.builds(
        Everything,
        text=texts | tricky,
        texts=st.dictionaries(texts | tricky, texts | tricky, max_size=3),
        number=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        whole=st.integers(),
        flag=st.booleans(),
    )
)
def test_dump_then_load_is_the_identity(config: Everything) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.yaml"
        path.write_text(dump_settings(config), encoding="utf-8")
        assert load_settings(path, [], Everything) == config
