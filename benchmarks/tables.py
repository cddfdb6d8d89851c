"""Two tables in, links out: rlea with nothing but the files, beside plain strings and other programs.

    python benchmarks/tables.py --data DIR --json FILE

Every program gets the same two CSV files, whose gold is complete. `rlea` is `rlea align A B` without options: links as
written. Run a second time, the columns of the second table are called otherwise. rlea was developed with these tables
in sight (docs/measuring.md). Strings are TF-IDF vectors of words, or of three letters in a row, of all values with the
best one-to-one mapping; all links of it count. splink (5.0) and pyjedai (0.3) are run, if they are installed, as their
own documentation does, with the threshold given there. A second row of each has the threshold with the best F1 by gold,
which nobody could know: an upper bound.

- pyjedai, "Clean-Clean ER" (a tutorial on this very pair of shops; there is none on the bibliographies, which get the
  same): token blocking on the name, purging, filtering (.8), weighted edge pruning (EJS), TF-IDF of three letters of
  all columns, unique mapping above .17.
- pyjedai, best workflow ("User-Friendly Wrapper", predefined workflows): token blocking on all columns, filtering (.9),
  then the same. Workflows with sentence encoders need weights to be downloaded and are left out.
- splink, comparison library ("Linking without deduplication", "Linking the febrl4 datasets"; amounts as in "Linking
  banking transactions"): name comparisons with term frequencies, parameters by EM, probability of .9 or more.
- splink, word frequencies ("Matching businesses", its example for names that are bags of words): frequencies of shared
  words, the two rarest words for blocking, default m, match weight of -5 or more. The page has other columns than
  these; of the sets of columns tried here, the best by gold is kept: the name in shops; title, authors and year.

Both of splink end in its single best links: one-to-one, the surest first.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
import time
from collections import Counter
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

TABLES = {"shops": ("abt.csv", "buy.csv", "|"), "bibliographies": ("dblp.csv", "acm.csv", "%")}


def read_table(path, separator):
    """All rows as dicts."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=separator))


def score(found, gold):
    """Precision, recall and F1 of pairs of ids; gold is complete."""
    right = len(found & gold)
    return {
        "links": len(found),
        "precision": right / max(1, len(found)),
        "recall": right / len(gold),
        "f1": 2 * right / (len(found) + len(gold)),
    }


def renamed(path, separator, folder):
    """The same table with other names of its columns."""
    lines = path.read_text(encoding="utf-8").split("\n", 1)
    header = separator.join(f"feld{number}" for number, _ in enumerate(lines[0].split(separator)))
    copy = Path(folder) / path.name
    copy.write_text(f"{header}\n{lines[1]}", encoding="utf-8")
    return copy


def by_rlea(one, other):
    """`rlea align one other` and nothing else."""
    import rlea

    result = rlea.align(rlea.read(one, other))
    frame = result.to_polars()
    return set(zip(frame["source"].to_list(), frame["target"].to_list(), strict=True))


def by_strings(rows, others, pieces):
    """Pairs of the best one-to-one mapping by TF-IDF, the most alike first, each with its similarity."""
    from scipy.optimize import linear_sum_assignment

    from rlea.graph.names import plain
    from rlea.search.bags import count_terms, having, weigh_terms

    texts = [plain(" ".join(value for key, value in row.items() if key != "id" and value)) for row in [*rows, *others]]
    counts = count_terms(map(pieces, texts))
    vectors = weigh_terms(counts, having(counts))
    alike = (vectors[: len(rows)] @ vectors[len(rows) :].T).toarray()
    ends = linear_sum_assignment(-alike)
    order = np.argsort(-alike[ends], kind="stable")
    return [((rows[ends[0][k]]["id"], others[ends[1][k]]["id"]), alike[ends][k]) for k in order.tolist()]


def best_cut(pairs, gold):
    """As many of the first pairs as have the best F1."""
    if not pairs:
        return set()
    right = np.cumsum([pair in gold for pair in pairs])
    return set(pairs[: int(np.argmax(2 * right / (np.arange(1, len(right) + 1) + len(gold)))) + 1])


def one_to_one(scored):
    """Pairs with their scores, the best first, no row twice."""
    seen, kept = (set(), set()), []
    for pair, value in sorted(scored, key=lambda item: (-item[1], item[0])):
        if not any(end in side for end, side in zip(pair, seen, strict=True)):
            kept.append((pair, value))
            for end, side in zip(pair, seen, strict=True):
                side.add(end)
    return kept


def splink_frames(rows, others):
    """Both tables as splink takes them: null for empty cells, prices as numbers."""
    import pandas as pd

    frames = []
    for part in (rows, others):
        columns = {name: [row[name] or None for row in part] for name in part[0]}
        if "price" in columns:
            columns["price"] = [value and float(value.replace("$", "").replace(",", "")) for value in columns["price"]]
        frames.append(pd.DataFrame(columns).rename(columns={"id": "unique_id"}))
    return frames


def predict(frames, settings, train):
    """All pairs that splink compares, each with its match weight."""
    import duckdb
    from splink import DuckDBAPI, Linker

    connection = duckdb.connect()
    # splink's SQL parser knows only this way of writing functions.
    connection.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
    api = DuckDBAPI(connection=connection)
    tables = [api.register(frame, dataset_display_name=name) for frame, name in zip(frames, "ab", strict=True)]
    linker = Linker(tables, settings)
    train(linker.training)
    found = linker.inference.predict(threshold_match_weight=-40).as_pandas_dataframe()
    for row in found.itertuples():
        ends = row.unique_id_l, row.unique_id_r
        yield (ends if row.source_dataset_l == "a" else ends[::-1]), row.match_weight


def by_splink(rows, others):
    """Fellegi-Sunter with comparisons of splink's library, parameters by EM."""
    import splink.comparison_level_library as levels
    import splink.comparison_library as library
    from splink import SettingsCreator, block_on

    names = ["title", "authors"] if "title" in rows[0] else ["name"]
    comparisons = [library.NameComparison(name).configure(term_frequency_adjustments=True) for name in names]
    if "price" in rows[0]:
        near = [levels.PercentageDifferenceLevel("price", share) for share in (0.01, 0.03, 0.1, 0.3)]
        price = [levels.NullLevel("price"), levels.ExactMatchLevel("price"), *near, levels.ElseLevel()]
        comparisons.append(library.CustomComparison(price, output_column_name="price"))
        comparisons.append(library.JaroWinklerAtThresholds("description"))
    else:
        comparisons += [
            library.ExactMatch(name).configure(term_frequency_adjustments=True) for name in ("venue", "year")
        ]
    start = block_on(f"substr({names[0]}, 1, 9)")
    other = block_on("price" if "price" in rows[0] else "authors")
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=comparisons,
        blocking_rules_to_generate_predictions=[block_on(names[0]), other, start],
    )

    def train(training):
        training.estimate_probability_two_random_records_match([block_on(names[0])], recall=0.7)
        training.estimate_u_using_random_sampling(max_pairs=1e7, seed=1)
        for rule in (other, start):
            training.estimate_parameters_using_expectation_maximisation(rule)

    return one_to_one(predict(splink_frames(rows, others), settings, train))


def by_splink_words(rows, others):
    """Fellegi-Sunter by the frequencies of the words that two rows share."""
    import splink.comparison_level_library as levels
    import splink.comparison_library as library
    from splink import SettingsCreator, block_on

    names = ["title", "authors"] if "title" in rows[0] else ["name"]
    frames = splink_frames(rows, others)
    for name in names:
        add_words(frames, name)

    def words(name):
        shared = f"list_intersect({name}_words_l, {name}_words_r)"
        weight = f"coalesce(list_sum(list_transform({shared}, x -> x.weight)), 0)"
        missing = levels.CustomLevel(f"{name}_words_l is null or {name}_words_r is null")
        above = [levels.CustomLevel(f"{weight} > {least}") for least in (10, 8, 6, 4)]
        steps = [missing.configure(is_null_level=True), *above, levels.ElseLevel()]
        return library.CustomComparison(steps, output_column_name=f"{name}_words")

    rare = [f"l.{names[0]}_rare[{one}] = r.{names[0]}_rare[{two}]" for one in (1, 2) for two in (1, 2)]
    settings = SettingsCreator(
        link_type="link_only",
        probability_two_random_records_match=1 / len(others),
        comparisons=[*map(words, names), *([library.ExactMatch("year")] if "year" in rows[0] else [])],
        blocking_rules_to_generate_predictions=[*rare, block_on(names[0])],
    )

    def train(training):
        training.estimate_u_using_random_sampling(max_pairs=1e7, seed=1)

    return one_to_one(predict(frames, settings, train))


def add_words(frames, name):
    """Columns with the words of a text and minus log10 of their frequencies, and with the two rarest of them."""
    texts = [[(text or "").upper().split() for text in frame[name]] for frame in frames]
    counts = Counter(word for part in texts for text in part for word in text)
    every = counts.total()
    for frame, part in zip(frames, texts, strict=True):
        weighed = [[{"word": word, "weight": -math.log10(counts[word] / every)} for word in {*text}] for text in part]
        rare = [
            sorted({word for word in text if counts[word] < every / 100}, key=lambda word: (counts[word], word))
            for text in part
        ]
        frame[f"{name}_words"] = [words or None for words in weighed]
        frame[f"{name}_rare"] = [[*words, None, None][:2] for words in rare]


def by_pyjedai(rows, others, *, is_best):
    """Blocks, TF-IDF of letters, unique mapping: of the tutorial, or of the workflow that pyjedai calls its best."""
    import pandas as pd
    from pyjedai.block_building import StandardBlocking
    from pyjedai.block_cleaning import BlockFiltering, BlockPurging
    from pyjedai.clustering import UniqueMappingClustering
    from pyjedai.comparison_cleaning import WeightedEdgePruning
    from pyjedai.datamodel import Data
    from pyjedai.matching import EntityMatching

    frames = [pd.DataFrame(part).astype(str) for part in (rows, others)]
    data = Data(dataset_1=frames[0], id_column_name_1="id", dataset_2=frames[1], id_column_name_2="id")
    name = {} if is_best else {f"attributes_{side}": [frames[0].columns[1]] for side in (1, 2)}
    blocks = StandardBlocking().build_blocks(data, tqdm_disable=True, **name)
    if not is_best:
        blocks = BlockPurging().process(blocks, data, tqdm_disable=True)
    blocks = BlockFiltering(ratio=0.9 if is_best else 0.8).process(blocks, data, tqdm_disable=True)
    candidates = WeightedEdgePruning(weighting_scheme="EJS").process(blocks, data, tqdm_disable=True)
    matcher = EntityMatching(
        metric="cosine", tokenizer="char_tokenizer", vectorizer="tfidf", qgram=3, similarity_threshold=0.0
    )
    graph = matcher.predict(candidates, data, tqdm_disable=True)
    clusters = UniqueMappingClustering().process(graph, data, similarity_threshold=0.0)
    scored = []
    for cluster in clusters:
        ends = sorted(cluster)
        if len(ends) == 2:
            pair = rows[ends[0]]["id"], others[ends[1] - len(rows)]["id"]
            scored.append((pair, float(graph.edges[ends[0], ends[1]]["weight"])))
    return one_to_one(scored)


def measure(name, folder):
    """Rows of figures of one pair of tables."""
    from rlea.evidence.words import trigrams

    one, other, separator = TABLES[name]
    paths = folder / one, folder / other
    rows, others = (read_table(path, separator) for path in paths)
    gold = {tuple(row.values()) for row in read_table(folder / "gold.csv", separator)}
    by_rlea(*paths)  # compiling is not part of aligning

    def rlea_row(program, *tables):
        begin = time.perf_counter()
        found = by_rlea(*tables)
        return {"pair": name, "program": program, **score(found, gold), "seconds": time.perf_counter() - begin}

    yield rlea_row("rlea", *paths)
    with tempfile.TemporaryDirectory() as place:
        yield rlea_row("rlea, other names of columns", paths[0], renamed(paths[1], separator, place))
    for program, run, least in (
        ("TF-IDF of words", partial(by_strings, pieces=str.split), -1.0),
        ("TF-IDF of three letters", partial(by_strings, pieces=trigrams), -1.0),
        ("splink, comparison library", by_splink, math.log2(0.9 / 0.1)),
        ("splink, word frequencies", by_splink_words, -5.0),
        ("pyjedai, Clean-Clean ER", partial(by_pyjedai, is_best=False), 0.17),
        ("pyjedai, best workflow", partial(by_pyjedai, is_best=True), 0.17),
    ):
        row = {"pair": name, "program": program}
        begin = time.perf_counter()
        try:
            scored = run(rows, others)
        except ImportError as error:
            yield row | {"missing": str(error.name)}
            continue
        seconds = time.perf_counter() - begin
        yield row | score({pair for pair, value in scored if value >= least}, gold) | {"seconds": seconds}
        bound = {"pair": name, "program": f"{program}, best threshold"}
        yield bound | score(best_cut([pair for pair, _ in scored], gold), gold)


def installed(name):
    """The version of a package; None where it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with shops and bibliographies")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    import rlea
    from rlea.record import as_json, describe_run

    found, prints = [], {}
    for name, (one, other, _) in TABLES.items():
        prints[name] = rlea.read(options.data / name / one, options.data / name / other).fingerprint
        for row in measure(name, options.data / name):
            found.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            print(found[-1], flush=True)
    if options.json:
        record = describe_run(rows=found, fingerprints=prints, seed=0)
        record["versions"] |= {name: installed(name) for name in ("splink", "pyjedai")}
        record["command"] = "python benchmarks/tables.py --data DIR"
        options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
