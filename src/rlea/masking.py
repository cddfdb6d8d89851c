"""What hidden names and attributes mean for models: which are refused, and what is said of the others.

The graphs themselves are stripped in `rlea.graph.masking`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rlea.errors import InputError
from rlea.graph.masking import NAMES
from rlea.graph.masking import hide as hide
from rlea.graph.masking import parse_hidden as parse_hidden
from rlea.models import MODELS

UNKNOWN = "what the vectors of the file were made from is not known"


def check_hidden(hidden: Collection[str], embedding: str) -> None:
    """Refuse a model that needs names if they are hidden; models that also use attributes do without them."""
    if NAMES in hidden and embedding in MODELS and NAMES in _uses(embedding):
        raise InputError(
            f"{embedding} looks at names and these are hidden",
            remedy="use vectors of structure, such as --embedding aligne (--model for `rlea embed`), which needs seeds",
        )


def check_vectors(hidden: Collection[str], info: Mapping[str, Any], path: str) -> dict[str, Any]:
    """`info` of vectors from a file, with a note if it does not say what they were made from.

    The file was made before anything was hidden: vectors of a model that looks at what is hidden are refused.
    """
    seen = set(hidden) - set(info.get("hidden", ()))
    model = str(info.get("model", "")).lower().replace("-", "")
    is_ours = model in MODELS and "library" not in info
    if not seen or (is_ours and not seen & _uses(model)):
        return dict(info)
    if is_ours:
        what = " and ".join(sorted(seen & _uses(model)))
        raise InputError(
            f"the vectors are of {info['model']}, which looks at {what}, and these are to be hidden",
            path=path,
            remedy=f"make them anew with rlea embed --hide {','.join(hidden)}, or give others",
        )
    return {**info, "hidden_note": UNKNOWN}


def describe_hidden(hidden: Sequence[str], info: Mapping[str, Any]) -> str:
    """What is hidden, in words, with the note that `check_vectors` left in the `info` of the vectors."""
    return " and ".join(hidden) + (f" ({info['hidden_note']})" if info.get("hidden_note") else "")


def shown_uses(embedding: str, hidden: Collection[str]) -> str:
    """What a model looks at, in the words of `MODELS`, without what is hidden."""
    return " and ".join(part for part in MODELS[embedding].uses.split(" and ") if part not in hidden)


def _uses(model: str) -> set[str]:
    return set(MODELS[model].uses.split(" and "))
