"""Train embedding models on the 15K data and keep what came of it, a line a run.

    python benchmarks/embeddings.py --data DIR --vectors DIR [--models mtranse sea] [--pairs EN_FR D_W] [--folds 1 2]
        [--device cpu] [--csv results/embeddings.csv]

DIR of --data holds the 15K folders. Vectors and the record of each run (settings, fingerprint of the data, machine)
go to DIR of --vectors as MODEL_PAIR_FOLD.safetensors and .json, one line per run to the CSV file, the whole records to
the .json file beside it. A run that is there, under the settings that are now the model's own, is not made again; a
stopped one goes on from its checkpoint.
Without --data nothing is run. `--add FILE.json ...` takes in records made elsewhere.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import get_args, get_type_hints

from rlea.commands import embed_to_file
from rlea.models import MODELS
from rlea.record import as_json

COLUMNS = (
    "model", "pair", "fold", "hits@1", "hits@5", "hits@10", "mrr", "epochs", "seconds", "device", "commit", "seed"
)  # fmt: skip
PAIRS = ("EN_FR", "EN_DE", "D_W", "D_Y")
TRAINED = [name for name, model in MODELS.items() if model.trained]


def row_of(record: dict) -> dict:
    """The line of a record that `rlea embed` wrote."""
    result = record["result"]
    row = {key: result[key] for key in ("model", "fold", "seed")}
    row["pair"] = result["pair"].removesuffix("_15K_V1")
    row |= {key: f"{result[key]:.4f}" for key in ("hits@1", "hits@5", "hits@10", "mrr")}
    training = result["training"]
    row |= {"epochs": training["epochs"], "seconds": f"{result['seconds']:.1f}", "device": training["device"]}
    return row | {"commit": record["commit"]}


def default_settings(model: str) -> dict:
    """What a model is trained with unless it is told otherwise, as a record has it."""
    settings, _ = get_args(get_type_hints(MODELS[model].load())["settings"])  # settings: ...Settings | None
    return json.loads(as_json(asdict(settings())))


def read_records(path: Path) -> dict[str, dict]:
    """The whole records beside the lines, by cell."""
    beside = path.with_suffix(".json")
    return json.loads(beside.read_text(encoding="utf-8"))["runs"] if beside.exists() else {}


def is_there(records: dict[str, dict], model: str, pair: str, fold: str, device: str) -> bool:
    """Whether a run of the cell is recorded that would be made alike today; `auto` is any device."""
    settings = default_settings(model)
    for record in records.values():
        row = row_of(record)
        is_cell = (row["model"], row["pair"], row["fold"]) == (model, pair, fold) and device in ("auto", row["device"])
        if is_cell and record["result"]["training"]["settings"] == settings:
            return True
    return False


def keep(path: Path, records: list[dict]) -> None:
    """Write the lines in a fixed order, and the whole records beside them; a later run of a cell takes its place."""
    beside = path.with_suffix(".json")
    known = read_records(path)
    for record in records:
        row = row_of(record)
        known[f"{row['model']} {row['pair']} {row['fold']} {row['device']}"] = record
    rows = sorted(
        (row_of(record) for record in known.values()),
        key=lambda row: (TRAINED.index(row["model"]), PAIRS.index(row["pair"]), row["fold"], row["device"]),
    )
    for target, text in ((beside, as_json({"runs": known})), (path, as_lines(rows))):
        partial = target.with_name(f".{target.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)


def as_lines(rows: list[dict]) -> str:
    lines = [",".join(COLUMNS), *(",".join(str(row[key]) for key in COLUMNS) for row in rows)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path("runs"))
    parser.add_argument("--models", nargs="+", default=TRAINED)
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS))
    parser.add_argument("--folds", nargs="+", default=["1"])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--csv", type=Path, default=Path("results/embeddings.csv"))
    parser.add_argument("--add", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    if options.add:
        keep(options.csv, [json.loads(path.read_text(encoding="utf-8")) for path in options.add])
        return
    if options.data is None:
        print("skipped: --data names the folder of the 15K data sets")
        return
    options.vectors.mkdir(parents=True, exist_ok=True)
    for fold in options.folds:
        for model in options.models:
            for pair in options.pairs:
                if is_there(read_records(options.csv), model, pair, fold, options.device):
                    print(f"{model:9}{pair:6} {fold}  is there", flush=True)
                    continue
                output = options.vectors / f"{model}_{pair}_{fold}.safetensors"
                start = time.perf_counter()
                embed_to_file(options.data / f"{pair}_15K_V1", model, output, fold=fold, seed=0, device=options.device)
                record = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
                record["command"] = f"rlea embed {pair}_15K_V1 --model {model} --fold {fold} --device {options.device}"
                record["result"]["output"] = output.name
                keep(options.csv, [record])
                row = row_of(record)
                print(
                    f"{model:9}{pair:6} {fold}  Hits@1 {row['hits@1']}  epochs {row['epochs']}  "
                    f"{row['seconds']} s ({time.perf_counter() - start:.0f} in all)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
