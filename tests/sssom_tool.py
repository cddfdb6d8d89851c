"""SSSOM files as the reference tool reads and judges them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

# The tool's libraries use what is deprecated in theirs.
quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def parse_sssom(path: Path) -> Any:
    """The mapping set as the reference tool reads it, after its validation."""
    parsers, validators = pytest.importorskip("sssom.parsers"), pytest.importorskip("sssom.validators")
    logging.getLogger("sssom").setLevel(logging.ERROR)
    mappings = parsers.parse_sssom_table(path)
    reports = validators.validate(mappings, fail_on_error=False)
    assert [result.message for report in reports.values() for result in report.results] == []
    return mappings
