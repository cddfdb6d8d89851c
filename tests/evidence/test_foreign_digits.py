"""Numbers, dates, units and places in the digits of other scripts: text at least, and never an error."""

import polars as pl
import pytest

from rlea.evidence.attributes.values import read_values
from rlea.evidence.paris.literals import literal_keys
from rlea.models.attributes import type_of_value
from small_graphs import build

SCRIPTS = ["٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９", "⁰¹²³⁴⁵⁶⁷⁸⁹"]
FORMS = [
    *("2020-01-01", "2020-01", "2020", "1.1.2020", "12/31/2020", "1 Jan 2020", "2020-01-01T00:00:00Z", "12.5", "1e3"),
    *("1,234.5", "12 km", "5 ft 3 in", "POINT(1.5 2.5)", "12.5, 13.5", "+2020-00-00"),
]
TYPES = ["", *(f"http://www.w3.org/2001/XMLSchema#{kind}" for kind in ("date", "gYear", "integer", "double"))]


@pytest.mark.parametrize("digits", SCRIPTS)
def test_no_literal_is_an_error(digits):
    values = [form.translate(str.maketrans("0123456789", digits)) for form in FORMS]
    # Mixed as well: a pattern may take the one script and a cast not the other.
    values += [form.replace("2", digits[2], 1) for form in FORMS]
    rows = [("a", name, value, kind) for name in ("born", "lat", "long") for value in values for kind in TYPES]
    graph = build([("a", "r", "b")], rows)
    assert len(read_values(graph, graph).source_rows)
    keys = literal_keys(pl.DataFrame({"value": values, "datatype": [""] * len(values)}))
    assert keys["key"].null_count() == 0
    for value in values:
        type_of_value(value)
