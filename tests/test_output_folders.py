"""What commands may write: never over an input, never over what is not of a run, and never two at a time."""

import pytest

from rlea.io.writers.run_folder import claimed

GRAPH = "\n".join(f"{{0}}{n}\tnear\t{{0}}{(n + 1) % 9}" for n in range(9)) + "\n"


@pytest.fixture
def graphs(tmp_path, monkeypatch):
    """The folder with two small graphs, a.tsv and b.tsv, and seeds, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tsv").write_text(GRAPH.format("a"))
    (tmp_path / "b.tsv").write_text(GRAPH.format("b"))
    (tmp_path / "seeds.tsv").write_text("a1\tb1\na2\tb2\n")
    return tmp_path


ALIGN = ("align", "a.tsv", "b.tsv", "--matcher", "mutual", "--output", "out", "-q")


def test_seeds_in_the_folder_of_the_output_stay(graphs, run_cli):
    (graphs / "out").mkdir()
    seeds = (graphs / "seeds.tsv").rename(graphs / "out" / "links.tsv")
    done = run_cli(*ALIGN, "--seeds", "out/links.tsv")
    assert done.code == 2
    assert "links.tsv: is an input, and would be an output as well" in " ".join(done.err.split())
    assert seeds.read_text() == "a1\tb1\na2\tb2\n"


@pytest.mark.parametrize("name", ["relations.tsv", "decisions.safetensors", "report.html", "run.json"])
def test_a_file_of_somebody_else_is_found_before_the_work(name, graphs, run_cli, monkeypatch):
    (graphs / "out").mkdir()
    (graphs / "out" / name).write_text("mine")
    monkeypatch.setattr("rlea.pipeline.read", lambda *given, **more: pytest.fail("it began to work"))
    assert run_cli(*ALIGN).code == 2
    assert [(path.name, path.read_text()) for path in (graphs / "out").iterdir()] == [(name, "mine")]


def test_the_same_run_again_replaces_its_own_files(graphs, run_cli):
    (graphs / "out").mkdir()
    others = [graphs / "out" / f"{name}.checkpoint" for name in ("training-names", "agent", "names")]
    for path in others:
        path.write_text("of somebody else")
    assert run_cli(*ALIGN).code == 0
    (graphs / "out" / "verdicts.tsv").write_text("mine")
    assert run_cli(*ALIGN, "--seeds", "seeds.tsv").code == 0
    assert (graphs / "out" / "verdicts.tsv").read_text() == "mine"
    assert [path.read_text() for path in others] == ["of somebody else"] * 3


def test_a_folder_that_another_run_writes_to_is_refused_at_once(graphs, run_cli, monkeypatch):
    monkeypatch.setattr("rlea.io.writers.run_folder._held", set())  # as another process has none
    with claimed("out"):
        monkeypatch.setattr("rlea.io.writers.run_folder._held", set())
        done = run_cli(*ALIGN)
    assert done.code == 2
    assert "another run writes to this folder" in " ".join(done.err.split())


def test_converting_a_file_into_itself_is_refused(graphs, run_cli):
    done = run_cli("convert", "a.tsv", "a.tsv")
    assert done.code == 2
    assert (graphs / "a.tsv").read_text() == GRAPH.format("a")


@pytest.mark.parametrize("command", [("embed", "pair", "--model", "aligne"), ("train", "pair")])
def test_the_record_beside_vectors_and_agents_replaces_no_other_file(command, graphs, run_cli):
    (graphs / "mine.json").write_text('{"mine": 1}')
    done = run_cli(*command, "--output", "mine.safetensors")
    assert done.code == 2
    assert "mine.json: is not the record of a run" in " ".join(done.err.split())
    assert (graphs / "mine.json").read_text() == '{"mine": 1}'


def test_duplicates_replace_nothing_either(graphs, run_cli):
    (graphs / "out").mkdir()
    (graphs / "out" / "pairs.tsv").write_text("mine")
    assert run_cli("dedupe", "a.tsv", "--output", "out").code == 2
    assert (graphs / "out" / "pairs.tsv").read_text() == "mine"


@pytest.mark.parametrize("name", ["clusters.tsv", "pairs.tsv"])
def test_clusters_of_several_graphs_replace_nothing_either(name, graphs, run_cli, monkeypatch):
    (graphs / "out").mkdir()
    (graphs / "out" / name).write_text("mine")
    (graphs / "c.tsv").write_text(GRAPH.format("c"))
    monkeypatch.setattr("rlea.several.read_one", lambda *given, **more: pytest.fail("it began to work"))
    done = run_cli("align", "a.tsv", "b.tsv", "c.tsv", "--output", "out", "-q")
    assert done.code == 2
    assert [(path.name, path.read_text()) for path in (graphs / "out").iterdir()] == [(name, "mine")]
