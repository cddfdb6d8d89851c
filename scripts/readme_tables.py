"""Write the tables of the README and of the pages in docs/ from the files in `results/`.

python scripts/readme_tables.py           # rewrites what stands between the markers
python scripts/readme_tables.py --check   # exit code 1 if a table is not what results/ says
"""

from __future__ import annotations

import csv
import json
import math
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from rlea.agent.questions import STRATEGIES
from rlea.experiments.deciders import DECIDERS
from rlea.experiments.figures import figures_of, markdown_table, share, title
from rlea.experiments.options import PAIRS
from rlea.experiments.published import TITLES

ROOT = Path(__file__).parent.parent
MODELS = TITLES | {"rsn": "RSN4EA"}
DRAWN = {"at random": "at random", "degree": "among the most connected tenth"}


def load(name: str) -> dict:
    return json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))


def load_csv(name: str) -> list[dict]:
    with (ROOT / "results" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results_of(name: str) -> list[dict]:
    return [run["result"] for run in load(name)["runs"].values()]


def pairs_in(rows: list[dict]) -> list[str]:
    return [name for name in PAIRS if any(row["pair"] == name for row in rows)]


def slim(table: str) -> str:
    """Empty cells as the pages have them."""
    return re.sub(r"\|  (?=\|)", "| ", table)


def pairs_table(names: Sequence[str], rows: list[list[str]]) -> str:
    """A table whose first column says what a row is; the others are data sets."""
    return slim(markdown_table(["", *map(title, names)], rows))


def demo_table() -> str:
    """Means over random seeds with their spread; beside them the range of F1 where some triples are left out."""
    rows = {(row["kind"], row["matcher"]): row for row in load("demo_seeds.json")["rows"]}
    lines = []
    for (kind, matcher), row in rows.items():
        if kind == "seeds":
            other = rows["triples", matcher]
            figures = [f"{share(row[key])} ± {share(row[f'{key}_std'])}" for key in ("precision", "recall", "f1")]
            lines.append(
                [matcher, *figures, f"{share(other['f1_least'])} to {share(other['f1_most'])}", f"{row['seconds']:.2f}"]
            )
    return markdown_table(["matcher", "precision", "recall", "F1", "F1 with less", "seconds"], lines)


def results_table() -> str:
    """The headline: what is reached on the same vectors, beside what was published; from the files of `reproduce`."""
    deciders = figures_of(results_of("deciders.json"), ("model", "pair", "decider"))
    published = {row["system"]: row for row in load_csv("published.csv")}

    def row(model: str, decider: str, uses: str) -> list[str]:
        own = [deciders[model, name, decider] for name in PAIRS]
        word = {"rlea": "the agent", "paper": "the paper's agent"}.get(decider, decider)
        mark = "**" if decider == "rlea" else ""
        folds = min(figure.folds for figure in own)
        what = f"{mark}rlea: {MODELS[model].removesuffix('4EA')} + {word}{mark}"
        return [what, uses, str(folds), *(f"{mark}{share(figure.mean)}{mark}" for figure in own)]

    def theirs(system: str, folds: str = "5") -> list[str]:
        one = published[system]
        measure = "" if one["measure"] == "Hits@1" else f" ({one['measure']})"
        return [f"{system}, published{measure}", one["uses"], folds, *(one[name] for name in PAIRS)]

    rows = [
        theirs("RLEA on SEA"),
        *(row("sea", decider, "structure") for decider in ("paper", "hungarian", "best-first", "rlea")),
        theirs("RLEA on RSN"),
        row("rsn", "rlea", "structure"),
        theirs("BootEA"),
        row("bootea", "rlea", "structure"),
        joint_row(),
        theirs("RLEA on RDGCN"),
        row("rdgcn", "rlea", "structure and names"),
        names_row(),
        *(theirs(system, "-") for system in ("RHGN", "PARIS")),
    ]
    return (
        "Hits@1 on OpenEA 15K V1 (10,500 test pairs, pool of test targets):\n\n"
        f"{slim(markdown_table(['', 'uses', 'folds', *map(title, PAIRS)], rows))}\n\n"
        "Made by `rlea reproduce` (`main`, `bootea`) and `rlea bench`: the same vectors and candidates for all deciders"
        " of a model, none of which sees a test link. Means over folds; published rows from `results/published.csv`."
        " Every table and figure of the paper beside what is measured here, with the reasons where the two differ:"
        " [docs/reproduction.md](docs/reproduction.md). On D-Y all names are the same on both sides; on D-W five of six"
        " target entities have nothing but a number."
    )


def evidence_table() -> str:
    """F1 of all evidence, with seeds and without, beside PARIS (own and published) and FLORA."""
    published = {row["system"]: row for row in load_csv("published.csv")}
    rows = [
        [f"{system}, published", "nothing", "-", *(published[system][name] for name in PAIRS), ""]
        for system in ("PARIS", "FLORA")
    ]
    own = {row["pair"]: row for row in results_of("paris.json") if row.get("f1") is not None}
    cells = [share(own[name]["f1"]) if name in own else "-" for name in PAIRS]
    spent = max(row["seconds"] for row in own.values())
    rows.append(["rlea: PARIS", "nothing", "1", *cells, f"at most {spent:.0f}"])
    for beginning, words in (("no-seeds", "nothing"), ("seeds", "20 % seeds")):
        found = [row for row in results_of("evidence.json") if (row["beginning"], row["variant"]) == (beginning, "all")]
        f1 = figures_of(found, ["pair"], "f1")
        cells = [f"**{share(f1[name,].mean)}**" if (name,) in f1 else "-" for name in PAIRS]
        folds = min(f1[name,].folds if (name,) in f1 else 0 for name in PAIRS)
        spent = max(row["seconds"] for row in found)
        rows.append(["**rlea: all evidence**", words, str(folds), *cells, f"at most {spent:.0f}"])
    return (
        "F1 on OpenEA 15K V1. With seeds: 20 % of the links, judged by the test links. Without: judged by all links."
        f"\n\n{slim(markdown_table(['', 'begins with', 'runs', *map(title, PAIRS), 'seconds'], rows))}\n\n"
        "Made by `rlea reproduce conventional` and `rlea reproduce evidence`, one thread a run on a shared machine;"
        " what each channel adds is in [docs/reproduction.md](docs/reproduction.md#evidence). EN-DE and D-Y come"
        " without the attributes of their second graph: PARIS has nothing to begin with there, and names do most."
        " On D-Y all names are equal."
    )


def names_row() -> list[str]:
    """Best-first on the n-grams of names, which need no training."""
    cells = []
    for name in PAIRS:
        rows = {row["matcher"]: row for row in load(f"bench_{name}_names.json")["rows"]}
        cells.append(share(rows["best-first"]["hits@1"]))
    return ["rlea: names + best-first, no training", "structure and names", "1", *cells]


def joint_row() -> list[str]:
    """AlignE and the agent trained in turn: the round that validation links choose, as `rlea align --joint` does."""
    results = [row for row in results_of("joint.json") if (row["model"], row["fold"]) == ("aligne", "1")]
    found = {row["pair"]: row["hits@1"] for row in results}
    return ["**rlea: AlignE + the agent, joint rounds**", "structure", "1", *(f"**{share(found[n])}**" for n in PAIRS)]


def best_first_table() -> str:
    rows = load("best_first.json")["rows"]
    names = [name for name in rows[0] if name != "case"]
    return pairs_table(names, [[row["case"], *(share(row[name]["hits@1"]) for name in names)] for row in rows])


def agent_table() -> str:
    """Greedy and the two presets on four pairs: Hits@1, share of pairs the policy accepts, how far it varies."""
    rows = load("agent.json")["rows"]
    names, lines = pairs_in(rows), []
    cells = {(row["pair"], row["matcher"]): row for row in rows}
    for matcher in ("greedy", "paper", "released"):
        found = [cells[name, matcher] for name in names]
        lines.append([f"{matcher}: Hits@1", *(share(row["hits@1"]) for row in found)])
        if matcher == "greedy":
            continue
        for words, key in (
            ("links that are greedy's too", "same_as_greedy"),
            ("candidate pairs with match the likelier action", "accepted"),
            ("probability of match, mean", "probability_mean"),
            ("its standard deviation between pairs", "probability_std"),
        ):
            lines.append([f"{matcher}: {words}", *(f"{row[key]:.3f}" for row in found)])
    return pairs_table(names, lines)


def agent_cost_table() -> str:
    record = load("agent_cost.json")
    head = ["pair", "candidates", "episodes", "training, s", "decoding, s", "sources", "peak memory, GB"]
    rows = [
        [title(row["pair"]), str(row["candidates"]), str(row["episodes"]), f"{row['train_seconds']:.0f}",
         f"{row['decode_seconds']:.2f}", f"{row['sources']:,}", f"{row['peak_memory_mb'] / 1000:.1f}"]
        for row in record["rows"]
    ]  # fmt: skip
    ratio = record["ratio_50_to_10"]["train_seconds"]
    return f"{markdown_table(head, rows)}\n\n50 candidates cost {ratio:.1f} times what 10 do."


def differences_table() -> str:
    rows = [
        [row["case"], share(row["hits@1"]), share(row["precision"]), f"{row['links']:,}",
         *(f"{row[key]:.3f}" for key in ("accepted", "probability_mean", "probability_std"))]
        for row in load("agent_differences.json")["rows"]
    ]  # fmt: skip
    return markdown_table(
        ["the preset `paper` with", "Hits@1", "precision", "links", "accepted", "p, mean", "p, std"], rows
    )


def embeddings_table() -> str:
    """Every recorded model and pair: fold 1 and the mean of all folds there are, beside what was published."""
    rows, lines = load_csv("embeddings.csv"), []
    published = {(row["model"], row["pair"]): row for row in load_csv("published_models.csv")}
    recorded = {row["model"] for row in rows}
    for model, name in MODELS.items():
        if model not in recorded:
            continue
        first, means, seconds, theirs, their_seconds = [], [], [], [], []
        for pair in PAIRS:
            found = [row for row in rows if row["model"] == model and row["pair"] == pair]
            own = [row for row in found if row["fold"] == "1"]
            hits = {row["fold"]: float(row["hits@1"]) for row in found}
            first.append(share(float(own[0]["hits@1"])) if own else "-")
            several = f"{share(sum(hits.values()) / len(hits))} ({len(hits)})" if len(hits) > 1 else "-"
            means.append(several)
            seconds.append(
                f"{float(own[0]['seconds']):.0f}{' GPU' if own[0]['device'] == 'cuda' else ''}" if own else "-"
            )
            row = published.get((model, pair), {})
            deviation = f" ± {share(float(row['std']))}" if row.get("std") else ""
            theirs.append(f"{share(float(row['hits@1']))}{deviation}" if row.get("hits@1") else "-")
            their_seconds.append(f"{float(row['seconds']):.0f}" if row.get("seconds") else "-")
        lines.append([name.removesuffix("4EA"), "Hits@1, fold 1", *first])
        if any(cell != "-" for cell in means):
            lines.append(["", "mean (folds)", *means])
        lines += [["", "published", *theirs], ["", "seconds, fold 1", *seconds]]
        if any(cell != "-" for cell in their_seconds):
            lines.append(["", "published", *their_seconds])
    return slim(markdown_table(["model", "", *map(title, PAIRS)], lines))


def deciders_table() -> str:
    """Hits@1 of every decider over every model's vectors, a table a pair, the best of a row in bold."""
    rows = [row for row in load_csv("deciders.csv") if row["fold"] == "1" and row["pool"] == "test"]
    hits = {(row["pair"], row["model"], row["decider"]): share(float(row["hits@1"])) for row in rows}
    tables = ["Hits@1 on OpenEA 15K V1 (fold 1, pool of test targets), rows by the model of the vectors:"]
    for pair in PAIRS:
        deciders = [name for name in DECIDERS if any(key[0] == pair and key[2] == name for key in hits)]
        lines = []
        for model, shown_model in MODELS.items():
            cells = [hits.get((pair, model, name), "-") for name in deciders]
            found = [cell for cell in cells if cell != "-"]
            best = max(found, key=float, default="")
            shown = [f"**{cell}**" if cell == best else cell for cell in cells]
            if found:
                lines.append([shown_model, *shown])
        if deciders:
            tables.append(markdown_table([title(pair), *deciders], lines))
    return "\n\n".join([*tables, agent_summary(rows)])


def agent_summary(rows: list[dict]) -> str:
    """In a sentence or two: in how many cells the agent is first, by how much, and how far its confidences are off."""
    hits = {(row["pair"], row["model"], row["decider"]): float(row["hits@1"]) for row in rows}
    cells = {(pair, model) for pair, model, decider in hits if decider == "rlea"}
    names = {decider for *_, decider in hits} - {"rlea"}
    first = sum(hits[*cell, "rlea"] > max(hits.get((*cell, name), 0) for name in names) for cell in cells)
    lead = {
        name: [100 * (hits[*cell, "rlea"] - hits[*cell, name]) for cell in cells if (*cell, name) in hits and of(cell)]
        for name, of in (("best-first", lambda cell: True), ("hungarian", lambda cell: cell[1] != "rdgcn"))
    }
    errors = [
        record["result"]["ece"]
        for key, record in load("deciders.json")["runs"].items()
        if key.endswith(" rlea") and record["result"]["pool"] == "test"
    ]
    over = {name: sum(values) / len(values) for name, values in lead.items()}
    return (
        f"The agent (rlea) is first in {first} of {len(cells)} cells: by {over['best-first']:.1f} points over"
        f" best-first in the mean, by {over['hungarian']:.1f} over Hungarian in the mean of the"
        f" {len(lead['hungarian'])} cells whose vectors know no names. The expected calibration error of its"
        f" confidences is {share(max(errors))} at most, {share(sum(errors) / len(errors))} in the mean."
        + dangling_summary()
    )


def dangling_summary() -> str:
    """What is recorded of pairs of which a share of the targets was taken out."""
    rows = [row for row in load_csv("deciders.csv") if row["pool"] != "test"]
    scores = {(row["pair"], row["model"], row["pool"], row["decider"]): share(float(row["f1"])) for row in rows}
    runs = load("deciders.json")["runs"]
    parts = []
    for (pair, model, pool, decider), value in scores.items():
        if decider == "rlea":
            whole = share(runs[f"{model} {pair} 1 rlea {pool}"]["result"]["uncut"]["f1"])
            parts.append(
                f" With {pool.removeprefix('test-')} of the targets taken out of {pair.replace('_', '-')}"
                f" ({MODELS[model]}), its F1 is {value} with the links that lower the expected F1 left out ({whole}"
                f" with all), where best-first has {scores[pair, model, pool, 'best-first']} and Hungarian"
                f" {scores[pair, model, pool, 'hungarian']}."
            )
    return "".join(parts)


def context_cost_table() -> str:
    lines = []
    for row in load("context_cost.json")["rows"]:
        times = [f"{row[key]:.0f} s" if key in row else "-" for key in ("train_seconds", "choose_seconds")]
        of_decoding = f"{row['decode_seconds']:.1f} s", f"{row['decode_peak_memory_mb'] / 1000:.1f} GB"
        lines.append([title(row["pair"]), f"{row['sources']:,}", *times, *of_decoding])
    return markdown_table(["pair", "sources", "training", "choosing", "decoding", "memory of decoding"], lines)


def ablation_table() -> str:
    """Validation Hits@1 of every case, in points below or above the agent as it is."""
    results = results_of("context_ablation.json")
    names = pairs_in(results)
    cells = {(row["case"], row["pair"]): row["valid_hits@1"] for row in results}
    lines = []
    for case in dict.fromkeys(row["case"] for row in results):
        shown = [
            "-" if (case, name) not in cells else share(cells[case, name])
            if case == "as it is" else f"{100 * (cells[case, name] - cells['as it is', name]):+.1f}"
            for name in names
        ]  # fmt: skip
        lines.append([case, *shown])
    return pairs_table(names, lines)


def joint_table() -> str:
    """Test Hits@1 of every joint round, beside what the round's vectors alone would say."""
    results = [row for row in results_of("joint.json") if (row["model"], row["fold"]) == ("aligne", "1")]
    names = pairs_in(results)
    lines = []
    for number in sorted({one["round"] for row in results for one in row["by_round"]}):
        found = {row["pair"]: one for row in results for one in row["by_round"] if one["round"] == number}
        for key, words in (("hits@1", "the agent"), ("nearest", "nearest by the vectors alone")):
            cells = [share(found[name][key]) if name in found else "-" for name in names]
            lines.append([f"round {number}: {words}", *cells])
    return pairs_table(names, lines)


def same_links_table() -> str:
    """One row a setting; where it was recorded, how long `rlea align` takes now, against before."""
    record = load("same_links.json")
    tasks = list(dict.fromkeys(row["task"] for row in record["machines"]))
    lines = []
    for setting in dict.fromkeys(row["setting"] for row in record["machines"]):
        own = {row["task"]: row["md5"][:12] for row in record["machines"] if row["setting"] == setting}
        lines.append([setting, *(f"`{own[task]}`" for task in tasks)])
    table = slim(markdown_table(["", *tasks], lines))
    if "cost" not in record:  # of an earlier program it is measured apart
        return table
    cost = record["cost"]
    best = {name: min(row["seconds"] for row in cost["runs"] if row["program"] == name) for name in ("before", "after")}
    return (
        f"{table}\n\nThe price: `rlea align` on D_W (fold 1) takes {best['after']:.0f} s, where the program before took"
        f" {best['before']:.0f} s in the same run ({cost['ratio']:.2f} times as long)."
    )


def steady_table() -> str:
    lines = []
    for row in load("same_links.json")["seeds"]:
        f1 = share(min(row["f1"])), share(max(row["f1"]))
        sure = f"{min(row['sure']):,}", f"{max(row['sure']):,}"
        ranges = [one if one == other else f"{one} to {other}" for one, other in (f1, sure)]
        shares = [share(row[key]) for key in ("in_common_least", "found_by_the_other_least")]
        lines.append([row["task"], row["kind"], *ranges, *shares])
    return slim(markdown_table(["", "", "F1", "links of .9 and more", "in common", "found"], lines))


def before_after_table() -> str:
    """F1 of both programs; then the ratios of time and memory."""
    record = load("before_after.json")
    kinds = {"structure": "structure alone", "seeds": "all evidence", "no seeds": "all evidence, no seeds"}
    lines = []
    for row in record["figures"]["rows"]:
        evidence = kinds[row["evidence"]] + (f", vectors of {MODELS[row['model']]}" if row["model"] else "")
        before = share(row["before"]) if "before" in row else "-"
        lines.append([evidence, title(row["pair"]), before, share(row["after"])])
    mean, ratios = record["figures"]["mean"], record["cost"]["ratios"]
    told = {
        what: ", ".join(f"{title(key.split()[0])} {ratios[key]:.2f}" for key in ratios if key.endswith(f" {what}"))
        for what in ("seconds", "processor_seconds", "memory_mb")
    }
    return (
        f"{slim(markdown_table(['', '', 'before', 'after'], lines))}\n\nThe mean of the rows with both is"
        f" {mean['before']:.4f} before and {mean['after']:.4f} after. `rlea align` with seeds takes, as a share of"
        f" what it took before: seconds {told['seconds']}; processor time {told['processor_seconds']}; memory"
        f" {told['memory_mb']}."
    )


def span(sizes: list[int]) -> str:
    """The smallest and the largest of some sizes."""
    return f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def confidence_table() -> str:
    """Small pairs, growing numbers of seeds, and plain strings on tables."""
    rows = load("confidence.json")["rows"]
    small = [
        [
            *(title(row["pair"]), " / ".join(dict.fromkeys(map(span, (row["entities"], row["targets"]))))),
            *(f"{row['share']:.0%}", share(row["f1"])),
            *(f"{row['links']:.1f}", str(row["links@.9"])),
            "-" if row["precision@.9"] is None else share(row["precision@.9"]),
            *(share(row["ece"]), f"{row['overlap']:.0%}"),
        ]
        for row in rows
        if row["part"] in ("small", "unequal")
    ]
    head = ["", "entities", "shared", "F1", "links written", "links at .9 and more, all draws"]
    text = slim(markdown_table([*head, "precision of these", "calibration error", "estimated"], small))
    curves: dict[str, list[str]] = {}
    for row in rows:
        if row["part"] == "seeds":
            name = f"{title(row['pair'])}, {row['share']:.0%} of the links left, drawn {DRAWN[row['drawn']]}"
            curves.setdefault(name, []).append(f"{row['seeds']:,}: {share(row['f1'])}")
    lines = [f"- {name}: {', '.join(points)}" for name, points in curves.items()]
    strings = [
        [title(row["pair"]), f"{row['share']:.0%}", share(row["words"]), share(row["letters"])]
        for row in rows
        if row["part"] == "strings"
    ]
    best = slim(markdown_table(["best threshold", "links left", "words", "three letters in a row"], strings))
    parts = [text, best]
    if lines:
        parts.insert(1, "F1 of entities that are never seeds, by the number of seeds:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def filled(text: str, tables: dict) -> str:
    for name, table in tables.items():
        pattern = rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)"
        text, count = re.subn(pattern, lambda part, table=table: f"{part[1]}{table()}\n{part[2]}", text, flags=re.S)
        if count != 1:
            sys.exit(f"there is no place for the table {name!r}")
    return text


def reconcile_table() -> str:
    head = ["names of", "known", "columns", "right first", "in 10", "ECE", "matches", "precision", "recall"]
    rows = [
        [
            row["pair"],
            f"{row['answerable'] / row['queries']:.0%}",
            ", ".join(row["properties"]) or "none",
            *(share(row[key]) for key in ("right_first", "right_in_10", "ece")),
            f"{row['matches']:,}",
            *(share(row[key]) for key in ("match_precision", "match_recall")),
        ]
        for row in load("reconcile.json")["rows"]
        if row["part"] == "right"
    ]
    return markdown_table(head, rows)


def reconcile_cost() -> str:
    (row,) = [row for row in load("reconcile.json")["rows"] if row["part"] == "cost"]
    one, ten = (
        ", ".join(f"{row[f'batch_{size}_{key}_ms']:.0f} ms" for key in ("cpu", "p50", "p95")) for size in (1, 10)
    )
    most = [row.get(f"batch_{size}_cpu_p95_ms") for size in (1, 10)]  # older records lack it
    worst = (
        [["processor time, 95 % within, of 1 and of 10", ", ".join(f"{ms:.0f} ms" for ms in most)]] if all(most) else []
    )
    rows = [
        ["entities", f"{row['entities']:,}"],
        ["a batch of 1: processor time, median until the answer, 95 % within", one],
        ["a batch of 10: the same", ten],
        *worst,
        ["load of the two cores meanwhile, by others as well", f"{row['load']:.0f}"],
        ["reading, indexing and calibrating", f"{row['start_seconds']:.0f} s"],
        ["memory", f"{row['memory_mb']:,.0f} MB"],
        ["of the ten best names by comparing all, found", f"{row['candidate_recall']:.1%}"],
    ]
    return slim(markdown_table([f"{row['queries']:,} misspelt names by HTTP, one request after the other", ""], rows))


def recorded(row: dict, key: str) -> str:
    """A share; a dash where the record is of before it was measured."""
    return share(row[key]) if key in row else "-"


def dedupe_table() -> str:
    rows = load("dedupe.json")["rows"]
    cells = {(row["graph"], row["share"]): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["graph"] for row in rows):
        none, few, many = (cells[name, share_] for share_ in sorted({row["share"] for row in rows}))
        found = f"{none['pairs']} ({none.get('equal', '-')})"
        scores = [recorded(row, key) for row in (few, many) for key in ("f1", "f1_equal")]
        lines.append([name, f"{none['entities']:,}", found, *scores, share(many["ece"])])
    head = ["", "entities", "pairs found, none planted (equal rows)", "F1, 5 % planted", "equal rows known"]
    return slim(markdown_table([*head, "F1, 30 % planted", "equal rows known", "ECE, 30 %"], lines))


def cardinality_table() -> str:
    head = ["", "split", "cardinality", "links", "gold", "precision", "recall", "F1", "ECE"]
    rows = [
        [
            *(row["pair"].removesuffix("_15K_V1"), f"{row['split']:.0%}", row["cardinality"]),
            *(f"{row[key]:,}" for key in ("links", "gold")),
            *(recorded(row, key) for key in ("precision", "recall", "f1", "ece")),
        ]
        for row in load("cardinality.json")["rows"]
    ]
    return slim(markdown_table(head, rows))


def tables_table() -> str:
    rows = [
        [
            row["pair"],
            row["program"],
            f"{row['links']:,}",
            *(share(row[key]) for key in ("precision", "recall", "f1")),
            f"{row['seconds']:.0f}" if "seconds" in row else "",
        ]
        for row in load("tables.json")["rows"]
    ]
    return slim(markdown_table(["", "", "links", "precision", "recall", "F1", "seconds"], rows))


def several_table() -> str:
    head = ["entities in each view", "mean F1 of the pairwise runs", "F1 of the clusters"]
    rows = [[f"{row['share']:.0%}", share(row["mean"]), share(row["clusters"])] for row in load("several.json")["rows"]]
    return slim(markdown_table(head, rows))


def dictionary_table() -> str:
    """With the channel and without, where it is of use."""
    rows = [row for row in load("dictionary.json")["rows"] if "f1" in row]
    head = ["", "begins with", "precision", "recall", "F1", "links of .9 and more", "precision of these", "processor s"]
    lines = [
        [
            f"{row['pair']} {'with' if row['dictionary'] else 'without'} the dictionary",
            row["beginning"],
            *(share(row[key]) for key in ("precision", "recall", "f1")),
            f"{row['sure links']:,}",
            share(row["precision of sure links"]),
            f"{row['processor seconds']:.0f}",
        ]
        for row in rows
    ]
    return slim(markdown_table(head, lines))


def review_cost() -> str:
    (row,) = load("review.json")["rows"]
    asked = {
        "the next pair": "next: none",
        "the same, of the least margin": "next: least margin",
        "the same, by confidence and disagreement": "next: confidences, disagreement",
        "the same, left out and against one channel": "next: left out, words against",
        "an answer, until it is on the disk": "answer",
        "undo": "undo",
        "search": "search",
    }
    rows = [
        [name, f"{row[key]['requests']:,}", *(f"{row[key][time]:.0f} ms" for time in ("p50_ms", "p95_ms", "most_ms"))]
        for name, key in asked.items()
    ]
    return slim(markdown_table(["by HTTP", "requests", "median", "95 % within", "longest"], rows))


def review_size() -> str:
    (row,) = load("review.json")["rows"]
    pairs = f"{row['links']:,} links and {row['pairs'] - row['links']:,} pairs left out"
    start, memory = f"{row['start_seconds']:.0f} s", f"{row['memory_mb']:,.0f} MB"
    cpu, others = f"{row['cpu_ms']:.0f} ms", f"{row['load']:.0f}"
    return (
        f"{pairs}, of two graphs of {row['entities']:,} entities. Reading and indexing took {start}, the memory is "
        f"{memory}. A question takes {cpu} of processor time, from the request to the answer kept; the rest is waiting "
        f"for the disk and for other processes, of which {others} wanted a core (`python benchmarks/review.py`)."
    )


def live_cost() -> str:
    """Processor time first: that of the clock depends on what else the machine did."""
    head = ["pair", "entities", "answers", "", "median", "95 % within", "longest", "until answers count"]
    rows = []
    for row in load("live.json")["rows"]:
        about = [row["pair"], " and ".join(f"{n:,}" for n in row["entities"]), f"{row['questions']}"]
        for name, key, making in (("processor", "cpu", "making_cpu_seconds"), ("clock", "clock", "making_seconds")):
            times = (f"{row[key][time]:,.0f} ms" for time in ("p50_ms", "p95_ms", "most_ms"))
            rows.append([*(about if key == "cpu" else [""] * len(about)), name, *times, f"{row[making]:,.0f} s"])
    others = max(row["load"] for row in load("live.json")["rows"])
    told = (
        f"Two cores, which up to {others:.0f} processes wanted: processor time compares (`python benchmarks/live.py`)."
    )
    return f"{slim(markdown_table(head, rows))}\n\n{told}"


def update_cost() -> str:
    record = load("update.json")
    head = ["", "", "entities that are new", "links", "gold links there", "F1", "s of the processor", "s"]
    rows = []
    for row in record["rows"]:
        new = f"{row['new']:,}" if "new" in row else "-"
        costs = (f"{row[name]:.0f}" for name in ("cpu_seconds", "seconds"))
        rows.append(
            [
                row.get("pair", record.get("pair")),
                row["step"],
                new,
                f"{row['links']:,}",
                f"{row['gold']:,}",
                share(row["f1"]),
                *costs,
            ]
        )
    others = max(row["load"] for row in record["rows"])
    told = (
        f"Without seeds; entities without a gold link are there from the start, and a link of theirs counts as wrong. "
        f"Two cores, which up to {others:.0f} processes wanted: seconds of the processor compare "
        f"(`python benchmarks/update.py`)."
    )
    return f"{slim(markdown_table(head, rows))}\n\n{told}"


def degenerate_table() -> str:
    head = ["", "triples a side", "processor seconds", "times", "peak memory", "times", "links", "of these right"]
    rows = [
        [
            *(row["kind"], f"{row['triples']:,}"),
            *(f"{row['cpu_seconds']:,.0f}", f"{row['times_seconds']:.1f}"),
            *(f"{row['peak_memory_mb']:,.0f} MB", f"{row['times_memory']:.1f}"),
            *(f"{row['links']:,}", f"{row['right']:,}"),
        ]
        for row in load("degenerate.json")["rows"]
    ]
    return slim(markdown_table(head, rows))


QUESTIONED = {
    "shops": "shops",
    "shops-half": "shops, half of the links left",
    "demo-half": "demo, half of the links left (learned from)",
    "D_W-25": "D-W, a quarter of the links left",
    "D_W": "D-W",
    "EN_DE": "EN-DE",
    "EN_FR-structure": "EN-FR by structure, 100 seeds",
}
ASKED = (0, 50, 100, 250, 500)  # questions


def question_curves(errs: float = 0.0) -> dict[tuple[str, str], list[dict[int, dict]]]:
    """Pair and strategy -> what was measured in every run, by the number of questions; those that never err."""
    found: dict[tuple[str, str], list[dict[int, dict]]] = {}
    for row in load("questions.json")["rows"]:
        if row["errs"] == errs:
            curve = {one["questions"]: one for one in row["curve"]}
            found.setdefault((row["cell"], row["strategy"]), []).append(curve)
    cells, strategies = list(QUESTIONED), list(STRATEGIES)
    return dict(sorted(found.items(), key=lambda item: (cells.index(item[0][0]), strategies.index(item[0][1]))))


def mean_of(curves: list[dict[int, dict]], number: int, key: str) -> float | None:
    """The mean of all runs that got as far."""
    values = [curve[number][key] for curve in curves if number in curve]
    return sum(values) / len(values) if len(values) == len(curves) else None


def question_table(errs: float = 0.0) -> str:
    """A session costs what the run decides again, and what is measured of it."""
    rows = []
    spent: dict[tuple[str, str], list[float]] = {}
    for row in load("questions.json")["rows"]:
        if row["errs"] == errs and "cpu_seconds" in row:
            spent.setdefault((row["cell"], row["strategy"]), []).append(row["cpu_seconds"])
    for (cell, strategy), curves in question_curves(errs).items():
        means = [mean_of(curves, number, "f1") for number in ASKED]
        shown = ["-" if mean is None else share(mean) for mean in means]
        used = spent.get((cell, strategy))
        cost = f"{sum(used) / len(used):.0f}" if used else "-"
        rows.append([QUESTIONED[cell], strategy, str(len(curves)), *shown, *([cost] if spent else [])])
    head = ["F1 after so many questions", "", "runs", *map(str, ASKED), *(["s of the processor"] if spent else [])]
    return slim(markdown_table(head, rows))


def question_gain_table() -> str:
    """How much of the gain of 100 questions is about other entities, and the calibration error."""
    rows = []
    for (cell, strategy), curves in question_curves().items():
        start, end, alone, ece, raw = (
            mean_of(curves, number, key)
            for number, key in ((0, "f1"), (100, "f1"), (100, "f1_alone"), (100, "ece"), (100, "ece_raw"))
        )
        if None in (start, end, alone, ece, raw):
            continue
        gains = [f"{100 * value:+.2f}" for value in (end - start, end - alone)]
        before = mean_of(curves, 0, "ece")
        rows.append([QUESTIONED[cell], strategy, *gains, share(before), share(raw), share(ece)])
    head = ["after 100 questions", "", "gain in F1", "of it, about others"]
    return slim(markdown_table([*head, "calibration error before", "not corrected", "corrected"], rows))


def reading_table() -> str:
    """A row for every size and format; seconds and memory now, and as a share of what the program before took."""
    record = load("synthetic_io.json")
    rows = {(row["entities"], row["format"], row["program"]): row for row in record["rows"]}
    called = {"nt": "N-Triples", "parquet": "Parquet", "rlea": "graph on disk"}
    lines = []
    for (entities, format_, program), row in rows.items():
        if program != "now":
            continue
        before = rows.get((entities, format_, "before"))
        ratios = ["-" if before is None else f"{row[what] / before[what]:.2f}" for what in ("cpu_seconds", "peak_mb")]
        costs = f"{row['cpu_seconds']:.2f}", f"{row['peak_mb']:,.0f}"
        sizes = f"{entities:,}", f"{max(row['triples']):,}", called[format_], f"{row['megabytes']:,.0f}"
        lines.append([*sizes, costs[0], ratios[0], costs[1], ratios[1]])
    head = ["entities a side", "triples a side", "", "MB of files", "processor s", "of before", "peak MB", "of before"]
    table = slim(markdown_table(head, lines))
    slopes = record["exponents"]["cpu_seconds"]
    if not slopes:  # of one size alone
        return table
    grows = ", ".join(f"{called[name]} {slopes[f'{name} now']:.2f}" for name in called)
    return f"{table}\n\nSeconds grow with the number of entities by a power of: {grows}."


def supersteps_table() -> str:
    """The sequential pass and the one in supersteps, in the same flow."""
    lines = [
        [
            title(row["pair"]),
            *(share(row[f"{how}_f1"]) for how in ("sequential", "supersteps")),
            *(f"{row[f'{how}_links']:,}" for how in ("sequential", "supersteps")),
            share(row["in_common"]),
            *(f"{row[f'{how}_pass_seconds']:.0f}" for how in ("sequential", "supersteps")),
            f"{row['rounds_mean']:,.0f}",
            f"{row['rounds_most']:,}",
        ]
        for row in load("supersteps.json")["rows"]
    ]
    head = [
        "",
        "F1, sequential",
        "F1, supersteps",
        "links",
        "links",
        "in common",
        "s of all passes",
        "s",
        "rounds of a pass",
    ]
    return slim(markdown_table([*head, "most"], lines))


def width_table() -> str:
    """First passes by the width of a round, beside the sequential one."""
    lines = [
        [
            "demo" if row["pair"] == "demo" else f"synthetic, {row['entities']:,}",
            "sequential" if row["width"] is None else f"{row['width']:g}",
            f"{row['links']:,}",
            f"{row['right']:,}",
            share(row["same"]),
            f"{row['rounds']:,}",
        ]
        for row in load("supersteps_width.json")["rows"]
    ]
    return slim(markdown_table(["first pass", "width", "links", "right", "as in the sequential one", "rounds"], lines))


def million_table() -> str:
    """Stages in rows, sizes in columns, and by which power of the size each grows."""
    record = load("million.json")
    rows, grows = record["rows"], record["exponents"]

    def power(name: str) -> str:
        return "" if grows.get(name) is None else f"{grows[name]:.2f}"

    lines = [[name, *(f"{row['stages'][name]:,.0f}" for row in rows), power(name)] for name in rows[0]["stages"]]
    lines.append(["**processor seconds**", *(f"{row['cpu_seconds']:,.0f}" for row in rows), power("all")])
    lines.append(["seconds by the clock", *(f"{row['seconds']:,.0f}" for row in rows), ""])
    lines.append(["load of the machine", *(f"{row['load']:.1f}" for row in rows), ""])
    lines.append(["**peak memory, MB**", *(f"{row['peak_memory_mb']:,}" for row in rows), power("memory")])
    lines.append(["triples a side", *(f"{row['triples']:,}" for row in rows), ""])
    lines.append(["edges of the largest hub", *(f"{row['largest_degree']:,}" for row in rows), ""])
    lines += [[name, *(share(row[name]) for row in rows), ""] for name in ("precision", "recall")]
    lines.append(["**F1**", *(share(row["f1"]) for row in rows), ""])
    for name in rows[-1]["recall_of_searches"]:
        found = (row["recall_of_searches"].get(name) for row in rows)
        lines.append([f"recall of the search by {name}", *("" if one is None else share(one) for one in found), ""])
    return slim(markdown_table(["entities a side", *(f"{row['entities']:,}" for row in rows), "grows by"], lines))


def cluster_table() -> str:
    """The same run on any number of workers, and with one killed."""
    rows = load("cluster.json")["rows"]
    first = {row["pair"]: row["seconds_driver"] + row["seconds_workers"] for row in reversed(rows)}
    lines = [
        [
            title(row["pair"]),
            {"killed": "local:2, a worker killed"}.get(row["how"], row["how"]),
            f"`{row['md5'][:12]}`",
            f"{row['seconds_driver']:.0f}",
            f"{row['seconds_workers']:.0f}",
            f"{(row['seconds_driver'] + row['seconds_workers']) / first[row['pair']]:.2f}",
            f"{row['peak_mb_driver']:,.0f}",
            f"{row['peak_mb_worker']:,.0f}",
            f"{row['bytes'] / 1e6:,.0f}",
        ]
        for row in rows
    ]
    head = [
        "",
        "workers",
        "MD5 of the links",
        "s, program",
        "s, workers",
        "of here",
        "peak MB, program",
        "peak MB, worker",
    ]
    return slim(markdown_table([*head, "MB of files"], lines))


LARGE = {10**7: "10 million", 10**8: "100 million", 10**9: "a billion"}
CORES = 64  # of a machine that can be rented


def growth(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Factor and exponent of a power law, by least squares of the logarithms."""
    exponent, factor = statistics.linear_regression([math.log(x) for x in sizes], [math.log(y) for y in values])
    return math.exp(factor), exponent


def passes_table() -> str:
    """Supersteps alone by size."""
    rows = load("cost_passes.json")["rows"]
    sizes = [row["entities"] for row in rows]
    shown = {
        "seconds": ("processor s of all shards", 1.0),
        "rounds": ("rounds", 1.0),
        "answered": ("MB answered by all", 1e-6),
    }
    lines = []
    for name, (called, unit) in shown.items():
        values = [unit * row["a_pass"][name] for row in rows]
        factor, exponent = growth(sizes, values)
        ahead = [f"{factor * size**exponent:,.0f}" for size in LARGE]
        lines.append([called, *(f"{value:,.1f}" for value in values), f"{exponent:.2f}", *ahead])
    # Links are told once or twice each, whatever the size; the rest is the table of relations, which does not grow.
    told = [1e-6 * row["a_pass"]["told"] for row in rows]
    slope, least = statistics.linear_regression(sizes, told)
    ahead = [f"{least + slope * size:,.0f}" for size in LARGE]
    lines.append(["MB told to each shard", *(f"{value:,.1f}" for value in told), "linear", *ahead])
    waiting = [f"{row['a_pass']['straggling']:.2f}" for row in rows]
    lines.append(["waiting for the slowest", *waiting, "", *([""] * len(LARGE))])
    return markdown_table(["a pass", *(f"{size:,}" for size in sizes), "exponent", *LARGE.values()], lines)


def cost_table() -> str:
    """Processor seconds by stage, files and memory; what large graphs take at least, if all went on as a line."""
    rows = load("cost_model.json")["rows"]
    sizes = [row["entities"] for row in rows]
    # At large sizes null models are drawn once: one game without matches, two with halves.
    often = {"matches taken out": 1, "halves": 2}
    lines, hours = [], dict.fromkeys(LARGE, 0.0)
    for stage in ("evidence", "describe pairs", *often):
        own = [row["stages"][stage] for row in rows]
        values = [one["seconds"] / one["parts"] * often[stage] if stage in often else one["seconds"] for one in own]
        ahead = _on_a_line(sizes, values)
        hours = {size: hours[size] + ahead[size] / 3600 for size in LARGE}
        cells = [f"{one['seconds']:,.1f} ({one['parts']})" for one in own]
        lines.append([f"s, {stage}", *cells, *(f"{ahead[size] / 3600:,.0f} h" for size in LARGE)])
    memory = [max(one["peak_memory_mb"] for one in row["stages"].values()) for row in rows]
    files = [(row["bytes_shared"] + sum(one["bytes"] for one in row["stages"].values())) / 1e9 for row in rows]
    for called, values, unit in (
        ("s, the program itself", [row["driver_seconds"] for row in rows], 3600.0),
        ("GB of files", files, 1.0),
        ("GB, the program", [row["driver_peak_mb"] / 1e3 for row in rows], 1.0),
        ("GB, a worker", [one / 1e3 for one in memory], 1.0),
    ):
        ahead = _on_a_line(sizes, values)
        ends = [f"{ahead[size] / unit:,.0f}{' h' if unit > 1 else ''}" for size in LARGE]
        lines.append([called, *(f"{value:,.2f}" for value in values), *ends])
    table = slim(markdown_table(["", *(f"{size:,}" for size in sizes), *LARGE.values()], lines))
    sums = "; ".join(
        f"{name} {hours[size] / CORES:,.1f} h, on 16 of these {hours[size] / CORES / 16:,.1f} h"
        for size, name in LARGE.items()
    )
    return f"{table}\n\nThe divided stages alone on a machine of {CORES} cores, if none ever waited: {sums}."


def _on_a_line(sizes: Sequence[float], values: Sequence[float]) -> dict[int, float]:
    """Values of large sizes, by the line through those of the two largest ones."""
    slope = (values[-1] - values[-2]) / (sizes[-1] - sizes[-2])
    return {size: values[-1] + slope * (size - sizes[-1]) for size in LARGE}


def main() -> None:
    pages = {
        ROOT / "README.md": {
            "demo": demo_table,
            "results": results_table,
            "evidence": evidence_table,
        },
        ROOT / "docs" / "measuring.md": {
            "same-links": same_links_table,
            "steady": steady_table,
            "before-after": before_after_table,
            "tables": tables_table,
        },
        ROOT / "docs" / "best-first.md": {"best-first": best_first_table},
        ROOT / "docs" / "embeddings.md": {"embeddings": embeddings_table},
        ROOT / "docs" / "paper.md": {
            "agent": agent_table,
            "agent-cost": agent_cost_table,
            "differences": differences_table,
        },
        ROOT / "docs" / "agent.md": {
            "deciders": deciders_table,
            "ablation": ablation_table,
            "joint": joint_table,
            "context-cost": context_cost_table,
            "confidence": confidence_table,
        },
        ROOT / "docs" / "clusters.md": {
            "dedupe": dedupe_table,
            "cardinality": cardinality_table,
            "several": several_table,
        },
        ROOT / "docs" / "serve.md": {"reconcile": reconcile_table, "reconcile-cost": reconcile_cost},
        ROOT / "docs" / "review.md": {"review-size": review_size, "review-cost": review_cost, "live-cost": live_cost},
        ROOT / "docs" / "scale.md": {
            "supersteps": supersteps_table,
            "widths": width_table,
            "cluster": cluster_table,
            "passes": passes_table,
            "cost": cost_table,
        },
        ROOT / "docs" / "search.md": {"reading": reading_table, "million": million_table},
        ROOT / "docs" / "dictionary.md": {"dictionary": dictionary_table},
        ROOT / "docs" / "update.md": {"update-cost": update_cost},
        ROOT / "docs" / "questions.md": {"questions": question_table, "question-gains": question_gain_table},
    }
    changed = False
    for path, tables in pages.items():
        old = path.read_text(encoding="utf-8")
        new = filled(old, tables)
        changed |= old != new
        if "--check" not in sys.argv[1:]:
            path.write_text(new, encoding="utf-8")
    if "--check" in sys.argv[1:]:
        sys.exit(changed)


if __name__ == "__main__":
    main()
