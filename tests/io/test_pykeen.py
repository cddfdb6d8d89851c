"""Models of PyKEEN's, planted: plain torch modules that have its attribute names, saved as it saves them."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.io.readers.pykeen import read_pykeen
from rlea.io.readers.vectors import read_embeddings
from small_graphs import only_entities


class Representation(torch.nn.Module):
    """Stands for `pykeen.nn.Embedding`: a table under `_embeddings`, besides what a reader has no use for."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self._embeddings = torch.nn.Embedding.from_pretrained(table, freeze=False)
        self.initializer = torch.nn.init.xavier_normal_
        self.settings = {"p": {1, 2}, "dtype": table.dtype, "shape": table.shape[1:], "device": torch.device("cpu")}


class TransE(torch.nn.Module):
    """Stands for a model; the relations come first, so that the first tensor of the file is not the wanted one."""

    def __init__(self, *tables: torch.Tensor) -> None:
        super().__init__()
        self.relation_representations = torch.nn.ModuleList([Representation(torch.full((2, 3), 7.0))])
        self.entity_representations = torch.nn.ModuleList(Representation(table) for table in tables)


def label_file(labels: Mapping[str, int]) -> str:
    rows = []
    for label, number in sorted(labels.items(), key=lambda item: item[1]):
        quoted = '"' + label.replace('"', '""') + '"' if any(sign in label for sign in '\t"\n\r') else label
        rows.append(f"{number}\t{quoted}\n")
    return "id\tlabel\n" + "".join(rows)


def save(folder: Path, model: Any, labels: Mapping[str, int], protocol: int = pickle.HIGHEST_PROTOCOL) -> Path:
    """As `PipelineResult.save_to_directory` does, so far as it concerns us."""
    (folder / "training_triples").mkdir(parents=True, exist_ok=True)
    torch.save(model, folder / "trained_model.pkl", pickle_protocol=protocol)
    content = gzip.compress(label_file(labels).encode())
    (folder / "training_triples" / "entity_to_id.tsv.gz").write_bytes(content)
    return folder


S, T = only_entities("s b", "s a", 'q"\tuote'), only_entities("t2", "Malmö", "two\nlines")
LABELS = {"s b": 4, "s a": 0, 'q"\tuote': 6, "t2": 2, "Malmö": 1, "two\nlines": 5, "nobody": 3}
PICKLE = "trained_model/data.pkl"
TABLE = torch.arange(21.0).reshape(7, 3) / 8 - 1


def change_members(folder: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Change the files within the zip file of a saved model."""
    with zipfile.ZipFile(folder / "trained_model.pkl") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(folder / "trained_model.pkl", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return folder


def check(folder: Path, table: torch.Tensor = TABLE) -> None:
    """Every entity has the row that its label names."""
    embeddings = read_embeddings(folder, S, T)
    for vectors, side in ((embeddings.source, S), (embeddings.target, T)):
        assert isinstance(vectors, np.ndarray)
        assert vectors.dtype == np.float32
        np.testing.assert_array_equal(vectors, table.float().numpy()[[LABELS[name] for name in side.entities]])
    assert embeddings.measure == "cosine"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_every_entity_has_its_vector(protocol: int, dtype: torch.dtype, tmp_path: Path) -> None:
    check(save(tmp_path, TransE(TABLE.to(dtype)), LABELS, protocol))


def test_the_first_of_several_representations_is_taken(tmp_path: Path) -> None:
    save(tmp_path / "boxes", TransE(TABLE, -TABLE), LABELS)
    check(tmp_path / "boxes")
    embeddings = read_embeddings(tmp_path / "boxes", S, T)
    assert embeddings.name == "boxes"
    assert embeddings.info == {"library": "PyKEEN", "model": "TransE", "entity_representations": 2}


def test_complex_numbers_are_two_columns_and_cosine_is_its_real_part(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randn(7, 4, dtype=torch.complex64, generator=generator)
    folder = save(tmp_path, TransE(torch.view_as_real(numbers).reshape(7, 8)), LABELS)
    table = read_pykeen(folder).table
    np.testing.assert_array_equal(table[:, 0::2], numbers.real)
    np.testing.assert_array_equal(table[:, 1::2], numbers.imag)
    length = np.linalg.norm(table, axis=1)
    products = (numbers @ numbers.mH).real.numpy()
    norms = np.linalg.norm(numbers.numpy(), axis=1)
    np.testing.assert_allclose(table @ table.T / np.outer(length, length), products / np.outer(norms, norms), atol=1e-6)


def test_a_part_of_a_shared_storage(tmp_path: Path) -> None:
    """Rows of a larger tensor are saved with all of it, and an offset."""
    whole = torch.cat([torch.full((5, 3), 9.0), TABLE, torch.full((2, 3), 9.0)])
    model = TransE(whole)
    model.entity_representations[0]._embeddings.weight = torch.nn.Parameter(whole[5:12])
    check(save(tmp_path, model, LABELS))


def test_modules_of_torch_1(tmp_path: Path) -> None:
    """They kept parts in an OrderedDict, which is pickled as a call and not as a dictionary."""
    from collections import OrderedDict

    model = TransE(TABLE)
    for module in model.modules():
        for group in ("_modules", "_parameters"):
            module.__dict__[group] = OrderedDict(getattr(module, group))
    check(save(tmp_path, model, LABELS))


@pytest.mark.parametrize("order", ["little", "big"])
def test_bytes_in_either_order(order: str, tmp_path: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        for name in members:
            if "/data/" in name and order == "big":
                members[name] = np.frombuffer(members[name], "<f4").astype(">f4").tobytes()
        members["trained_model/byteorder"] = order.encode()

    check(change_members(save(tmp_path, TransE(TABLE), LABELS), change))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00")), min_size=1, unique=True))
def test_any_label_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("labels")
    labels = {text: number for number, text in enumerate(texts)}
    model = read_pykeen(save(folder, TransE(torch.ones(len(texts), 2)), labels))
    assert model.identifiers == texts
    assert model.lines[0] == 2


# ---- files that mean harm -------------------------------------------------------------------------------------------


class Harm:
    """Does what it is told when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.order = (function, args)

    def __reduce__(self) -> Any:
        return self.order


HARMS = {
    "system": lambda mark: Harm(os.system, f"touch {mark}"),
    "mkdir": lambda mark: Harm(os.mkdir, str(mark)),
    "exec": lambda mark: Harm(exec, f"open({str(mark)!r}, 'w').close()"),
    "open": lambda mark: Harm(io.open, str(mark), "w"),
}


@pytest.mark.parametrize("name", HARMS)
@pytest.mark.parametrize("place", ["instead of the model", "in the model", "instead of the weights"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_harm_has_no_effect(name: str, place: str, protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    harm = HARMS[name](mark)
    model: Any = TransE(TABLE)
    if place == "instead of the model":
        model = harm
    elif place == "in the model":
        model.interaction = harm
    else:
        model.entity_representations[0]._embeddings._parameters["weight"] = harm
    folder = save(tmp_path / "saved", model, LABELS, protocol)
    with pytest.raises(InputError, match=r"asks for a call of .*\(it was not called\)"):
        read_embeddings(folder, S, T)
    assert not mark.exists()
    function, args = harm.order
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the file that `open` leaves open
        function(*args)
    assert mark.exists(), "what the file asks for leaves a mark where it is done, or this test proves nothing"


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'touch MARK'\ntR.",  # called by REDUCE
        b"(S'touch MARK'\nios\nsystem\n.",  # called by INST
        b"(cos\nsystem\nS'touch MARK'\no.",  # called by OBJ
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0atouch MARK\x85\x81.",  # made by NEWOBJ
        b"crlea.errors\nInputError\n(N}S'__doc__'\nS'MARK'\nstb.",  # a class of ours is given another attribute
        b"cbuiltins\ngetattr\n(cos\n__dict__\nS'system'\ntR(S'touch MARK'\ntR.",
        b"\x80\x02\x82\x01.",  # an extension that nobody has registered
        b"\x80\x02Nr" + struct.pack("<I", 2**32 - 1) + b".",  # a memo that would take tens of gigabytes
        b"p99999999999\n.",
        b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
        b"X\xff\xff\xff\x7fabc.",
        b"Qx.",
        b"",
    ],
)
def test_handwritten_pickles_have_no_effect(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = change_members(
        save(tmp_path / "saved", TransE(TABLE), LABELS), lambda members: members.update({PICKLE: content})
    )
    before, documentation = set(sys.modules), InputError.__doc__
    with pytest.raises(InputError, match=r"trained_model\.pkl: "):
        read_embeddings(folder, S, T)
    assert not (tmp_path / "MARK").exists()
    assert InputError.__doc__ == documentation
    assert set(sys.modules) == before


def test_no_module_of_the_file_is_imported(tmp_path: Path) -> None:
    """Importing one would run it already; a class of unknown modules is no hindrance."""
    old, new = __name__.encode(), b"x" * (len(__name__) - 2) + b".y"

    def change(members: dict[str, bytes]) -> None:
        assert old in members[PICKLE]
        members[PICKLE] = members[PICKLE].replace(old, new)

    check(change_members(save(tmp_path, TransE(TABLE), LABELS), change))


@settings(max_examples=60, deadline=None)
@given(position=st.integers(0, 10**6), byte=st.integers(0, 255), is_cut=st.booleans())
def test_damage_is_an_input_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, position: int, byte: int, is_cut: bool
) -> None:
    """One byte changed in the pickle, or the rest cut off: never another exception."""
    folder = tmp_path_factory.mktemp("damage")

    def change(members: dict[str, bytes]) -> None:
        pickled = bytearray(members[PICKLE])
        place = position % len(pickled)
        pickled[place] = byte
        members[PICKLE] = bytes(pickled[:place] if is_cut else pickled)

    change_members(save(folder, TransE(TABLE), LABELS), change)
    try:
        table = read_pykeen(folder).table
    except InputError as error:
        assert folder.name in str(error)  # noqa: PT017
    else:
        assert table.ndim == 2
        assert not is_cut
