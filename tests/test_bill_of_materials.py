"""`make bill`: all that the package needs, from the metadata of what is installed."""

import json
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


def load_script():
    spec = spec_from_file_location("bill_script", ROOT / "scripts" / "bill_of_materials.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


bills = load_script()


@pytest.fixture
def written(tmp_path):
    bills.main([str(tmp_path / "deep" / "bill.json")])
    return (tmp_path / "deep" / "bill.json").read_text(encoding="utf-8")


def test_everything_that_is_needed_stands_there_with_its_version(written):
    bill = json.loads(written)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"]["name"] == "rlea"
    found = {row["name"]: row["version"] for row in bill["components"]}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    for text in declared:
        name = bills.normal(Requirement(text).name)
        assert found[name] == version(name)
    assert "llvmlite" in found  # of numba: what packages need is needed as well
    assert "ruff" not in found  # only tests need it
    assert all(row["licenses"][0]["license"]["name"] for row in bill["components"] if row["name"] in ("numpy", "rich"))


def test_references_lead_somewhere(written):
    bill = json.loads(written)
    known = {row["bom-ref"] for row in (*bill["components"], bill["metadata"]["component"])}
    assert len(known) == len(bill["components"]) + 1
    assert {row["ref"] for row in bill["dependencies"]} == known
    assert all(known.issuperset(row["dependsOn"]) for row in bill["dependencies"])


def test_the_same_installation_gives_the_same_bytes_and_no_address(written, tmp_path):
    bills.main([str(tmp_path / "again.json")])
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == written
    assert "://" not in written


def test_extras_are_counted_in_where_they_are_asked_for():
    assert "pytest" not in bills.needed()
    assert {"pytest", "duckdb"} <= set(bills.needed(extras=["test"]))


def test_a_package_that_is_not_there_is_an_error():
    with pytest.raises(PackageNotFoundError):
        bills.needed("no-such-package-as-this")
