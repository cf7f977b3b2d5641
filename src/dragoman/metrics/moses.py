"""Moses tokenisation as published 'tokenised' BLEU figures use it: lowercase, normalise punctuation, tokenise."""

from collections.abc import Iterable

from dragoman.base.errors import ConfigError


def moses_tokenise(lines: Iterable[str], language: str) -> list[str]:
    """Lowercased, punctuation-normalised, tokenised lines; special characters are escaped (`&quot;`).

    language: code, which rules apply. Raises ConfigError for one that Moses has no rules for, and where the optional
    dependency sacremoses is missing.
    """
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer  # optional, and slow to import
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError as error:
        raise ConfigError(
            'tokenised BLEU needs sacremoses, which is not installed: pip install "dragoman[moses]"'
        ) from error
    known = sorted({code for code in NonbreakingPrefixes().available_langs.values() if len(code) < 4})
    if language not in known:
        raise ConfigError(f"Moses has no tokenisation rules for '{language}': choose one of {', '.join(known)}")
    normalise = MosesPunctNormalizer(lang=language).normalize
    tokenise = MosesTokenizer(lang=language).tokenize
    # The Perl script that sacremoses ports sees each line's end, and one of its rules for quotation marks needs it.
    return [str(tokenise(normalise(line.lower() + "\n"), return_str=True, escape=True)) for line in lines]
