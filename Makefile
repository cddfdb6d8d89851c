# Every target sets up .venv by itself where it is missing or out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
BENCH ?= all
# A file goes to one process, which makes its fixtures once; more than four processes would be short of memory.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile

MINUTES ?= 1

.PHONY: help demo test test-machines test-random test-slow fuzz check records bill bench docs clean

help:
	@echo "make demo           align two real graphs that come with the package"
	@echo "make test           all fast tests (under eight minutes)"
	@echo "make test-slow      the long ones"
	@echo "make test-random    the property tests, with new examples each time"
	@echo "make test-machines  the tests as other machines would run them (SETTINGS=name,name ARGS='-m decisions')"
	@echo "make fuzz           attack all readers and the whole flow (MINUTES=60 PARTS=runs); findings go to build/findings"
	@echo "make check          formatting, lint and types"
	@echo "make records        which files of results/ are of an older program or other settings (ARGS=--all)"
	@echo "make bill           the packages that rlea needs, as installed here, in CycloneDX JSON: build/rlea.cdx.json"
	@echo "make bench          measure speed and memory (BENCH=name for one)"
	@echo "make docs           the pages of docs/ as a site with search, in build/site"

$(BIN)/python:
	@echo "== Creating $(VENV)"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rlea needs Python 3.11 or newer; try: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "== Installing rlea (about a minute and a half; torch is the largest part)"
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "== Installing what the tests need"
	$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	@echo "== Installing what the benchmarks need"
	$(PIP) -e '.[bench]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "== Installing what the site needs"
	$(PIP) -e '.[docs]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/rlea demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PARALLEL)

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow

test-random: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "hypothesis and not slow" --hypothesis-profile random $(PARALLEL)

test-machines: $(VENV)/.installed-test
	$(BIN)/python scripts/test_machines.py --settings "$(SETTINGS)" -- $(PARALLEL) $(ARGS)

fuzz: $(VENV)/.installed-test
	cd tests && ../$(BIN)/python -m fuzz.run --minutes $(MINUTES) --parts "$(PARTS)" --findings ../build/findings

records: $(VENV)/.installed
	@$(BIN)/python scripts/records.py $(ARGS)

bill: $(VENV)/.installed-test
	@$(BIN)/python scripts/bill_of_materials.py

check: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/run.py $(BENCH)

docs: $(VENV)/.installed-docs
	@$(BIN)/python scripts/build_site.py
	@echo "Read it with: $(BIN)/python -m http.server -d build/site"

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
