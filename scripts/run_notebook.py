"""Run the code cells of a notebook in order and keep what they print; needs no Jupyter.

python scripts/run_notebook.py docs/two_tables.ipynb   # writes the outputs into the file
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any


def run(path: Path, folder: Path) -> dict[str, Any]:
    """The notebook with new outputs. It runs in `folder`, which gets a copy of the `data` beside the notebook."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    shutil.copytree(path.parent / "data", folder / "data")
    names: dict[str, Any] = {"__name__": "__main__"}
    before, number = Path.cwd(), 0
    os.chdir(folder)
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            number += 1
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            cell["execution_count"] = number
            lines = printed.getvalue().splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    finally:
        os.chdir(before)
    return notebook


def as_page(path: Path) -> str:
    """The notebook as a page in Markdown: its text, its code, and what that printed."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += ["```text\n" + "".join(output["text"]).rstrip() + "\n```" for output in cell.get("outputs", ())]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    path = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        notebook = run(path.resolve(), Path(folder))
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Written: {path}")


if __name__ == "__main__":
    main()
