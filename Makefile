# The commands of the project. `make run` on a fresh clone needs Python 3.11 or later and a C compiler, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
BENCH_STAMP := $(VENV)/.installed-bench
DOCS_STAMP := $(VENV)/.installed-docs
FUZZ_STAMP := $(VENV)/.installed-fuzz
# What `setup` installs besides the package: extras of pyproject.toml, with commas between them.
EXTRAS ?= examples

# What tests import is compiled once, not in every process that they start.
unexport PYTHONDONTWRITEBYTECODE
# One process more than cores, as some tests wait for services and browsers.
PROCESSES = $(shell $(BIN)/python -c 'import os; print(min(4, len(os.sched_getaffinity(0)) + 1))')
TESTS = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist worksteal --durations 20 --durations-min 5

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev editor run test quick fuzz fuzz-api fuzz-inputs lint format docs check bench corpus clean

help:  ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */make \1\t/' | expand -t 14

setup: $(STAMP)  ## the virtual environment, with the command at .venv/bin/tilesmith

$(STAMP): pyproject.toml setup.py editor/package-lock.json
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: make PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@

setup-dev: $(DEV_STAMP)  ## what tests, linters and types need besides, for who changes the code

$(DEV_STAMP): $(STAMP)
	@echo "installing the developers' tools ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,examples]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(FUZZ_STAMP): $(DEV_STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	@touch $@

editor:  ## the editor of the dashboard's playground, by npm: `make setup` has done it
	@cd editor && npm ci --ignore-scripts --no-audit --no-fund && npm run build

run: setup  ## a photograph through a pipeline, and the service until Ctrl-C (ONCE=1: ends by itself)
	@$(BIN)/python examples/demo.py $(if $(ONCE),--once)

test: setup-dev  ## the tests, in a process a core and one more (up to four)
	@$(TESTS)

quick: setup-dev  ## the tests but for those that compile and run C at length: a minute or so
	@$(TESTS) -m 'not slow'

fuzz: setup-dev  ## random cases in every build, an hour of them (SECONDS=60, CASES=1000, SEED=1)
	@$(BIN)/python tests/support/fuzz.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(CASES),--cases $(CASES)) $(if $(SEED),--seed $(SEED))

fuzz-api: setup-dev  ## ten minutes of requests to the whole API, each answer held to its description (SECONDS=60, SEED=1)
	@$(BIN)/python tests/support/fuzz_api.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

fuzz-inputs: $(FUZZ_STAMP)  ## an hour of hostile documents, strategies, platforms, schedules, images, ... (TARGET=documents, SECONDS=60)
	@$(BIN)/python tests/support/fuzz_inputs.py $(or $(TARGET),documents) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

lint: setup-dev  ## format, lint, types, and which package may import which
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup-dev  ## formats the code, and mends what the linter can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(DOCS_STAMP)  ## the documentation as a site, in build/site; every link is checked
	@NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/python -m mkdocs build --quiet
	@echo "build/site/index.html"

check: lint test  ## lint and test

bench: $(BENCH_STAMP)  ## side by side with Halide and OpenCV; takes minutes
	@$(BIN)/python -m benchmarks $(ARGS)

corpus: $(BENCH_STAMP)  ## the corpus: values and times of all its pipelines, in hours; goes on where it ended
	@nice $(BIN)/python -m benchmarks.corpus --halide Mullapudi2016 Adams2019 Li2018 --tune $(ARGS)

clean:  ## removes the virtual environment and the caches
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
