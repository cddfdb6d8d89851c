"""A finished cell stays finished until code that its result depends on changes."""

import pytest

from rlea.experiments.code_version import digest_of


@pytest.fixture
def package(tmp_path):
    """A package of three modules: `top` imports `middle`, which imports `bottom`; nobody imports `apart`."""
    folder = tmp_path / "pack"
    (folder / "low").mkdir(parents=True)
    write = {
        "__init__.py": "from pack.apart import other\n",
        "top.py": '"""Says what."""\nfrom pack.low import middle\n\n\ndef run():\n    return middle.value() + 1\n',
        "low/__init__.py": "",
        "low/middle.py": "def value():\n    from pack.bottom import NUMBER\n    return NUMBER\n",
        "bottom.py": "NUMBER = 1  # a comment\n",
        "apart.py": "other = 1\n",
    }
    for name, text in write.items():
        (folder / name).write_text(text)
    return folder


def version(package):
    digest_of.cache_clear()
    return digest_of(("pack.top",), package)


def test_comments_docstrings_layout_and_other_modules_do_not_count(package):
    before = version(package)
    (package / "bottom.py").write_text('"""Now with a docstring."""\n\nNUMBER = (\n    1\n)\n')
    (package / "top.py").write_text("from pack.low import middle\ndef run():\n    'new'\n    return middle.value()+1\n")
    (package / "apart.py").write_text("other = 2\n")
    (package / "new.py").write_text("NUMBER = 2\n")
    assert version(package) == before


@pytest.mark.parametrize("name", ["top.py", "low/middle.py", "bottom.py", "low/__init__.py"])
def test_a_change_of_anything_imported_counts(package, name):
    before = version(package)
    path = package / name
    path.write_text(path.read_text() + "\nmore = 2\n")
    assert version(package) != before


def test_an_unknown_module_is_refused(package):
    with pytest.raises(ValueError, match=r"no module pack\.gone"):
        digest_of(("pack.gone",), package)


def test_deciders_have_versions_of_their_own():
    from rlea.experiments.deciders import DECIDERS, code_of

    digest_of.cache_clear()
    assert len({code_of(name) for name in DECIDERS}) == len(DECIDERS)
