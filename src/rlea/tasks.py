"""Parts of a run that know nothing of each other: here one after another in this process, or wherever a run says.

`begin` hands over a function with its arguments and returns a function that waits for the result. Without an executor
it is called at once, so that a program reads the same either way. What parts have in common is handed over once, by
`shared`. A part is pure: the same arguments give the same result, in whatever process and however often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any, Protocol


class Executor(Protocol):
    """Calls functions somewhere."""

    def begin(self, stage: str, work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Hand over a call; the function that waits for its result. `stage` is for the record."""
        ...

    def shared(self, value: Any) -> Any:
        """What stands for a value among the arguments of several calls."""
        ...


_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def executed_by(executor: Executor | None) -> Iterator[None]:
    """Within the block, parts are handed to the executor; by None they are called where they stand."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def is_divided() -> bool:
    """Whether parts are handed over, so that dividing work has a use."""
    return _executor.get() is not None


def begin(stage: str, work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Hand over a call; the function that waits for its result."""
    executor = _executor.get()
    if executor is not None:
        return executor.begin(stage, work, *arguments)
    result = work(*arguments)
    return lambda: result


def shared(value: Any) -> Any:
    """What stands for a value among the arguments of several calls: without an executor, the value."""
    executor = _executor.get()
    return value if executor is None else executor.shared(value)


def blocks(count: int, least: int, most: int) -> list[slice]:
    """Rows in blocks of `least` or more, at most `most` blocks; they depend on the count alone, not on workers."""
    number = max(1, min(most, count // max(1, least)))
    bounds = [count * part // number for part in range(number + 1)]
    return [slice(low, high) for low, high in pairwise(bounds)]
