"""Which language a text is in, and how sure that is.

The model is that of langid.py (Lui and Baldwin 2012: naive Bayes over sequences of bytes), which the package
py3langid brings with it; nothing is downloaded. Its probabilities are spread by the length of the text, so
that three words do not claim what three pages may. Used by `regard.serving`.
"""

import threading
from functools import cache
from typing import Any

from regard.errors import UsageError

READ = 2000  # characters that are read of a text
_LOADING = threading.Lock()


@cache
def _identifier() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise UsageError('telling languages apart needs py3langid: pip install "regard[serve]"') from error
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def identifier() -> Any:
    """The model, loaded once; that takes a moment."""
    with _LOADING:
        return _identifier()


def languages_in(text: str) -> dict[str, float]:
    """Languages and how likely the text is in each, the likeliest first; none where it has no letters.

    >>> next(iter(languages_in("Das ist ein ganz gewöhnlicher deutscher Satz.")))
    'de'
    >>> languages_in("12 + 3")
    {}
    """
    text = text[:READ]
    if not any(map(str.isalpha, text)):
        return {}
    return dict(identifier().rank(text))


def language(code: str) -> str:
    """The language of a code with a region or a script.

    >>> language("pt_BR"), language("zh-Hans")
    ('pt', 'zh')
    """
    return code.replace("_", "-").partition("-")[0].lower()
