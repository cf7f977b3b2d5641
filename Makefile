# Every target creates the virtual environment it needs. PYTHON chooses the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
# One pytest worker per core and one thread per worker: small tensors gain nothing from more threads, and those of tests
# that have several should sleep while they wait for one another (passive). Tests take from half a millisecond to ten
# seconds, so an idle worker steals tests from another one.
WORKERS ?= 2
PYTEST = OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 10

# Some images set this variable; every process started by the tests would then compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-room room test-docs test-all test-levels docs reference lint types types-src types-tests format wheel release \
    release-needs lock clean

help:
	@echo "make demo      train on the built-in corpus and show the results"
	@echo "make test      the tests that every change must pass; takes minutes"
	@echo "make test-room ROOM=decode  the tests of one package; ROOM=nn/attention those of one of its folders"
	@echo "make test-docs  the commands, examples and lecture pages of the documentation, and the walks of new users"
	@echo "make test-all  all tests, including the slow ones"
	@echo "make test-levels  the numerical tests at each level of instructions that the processor has"
	@echo "make docs      build the documentation into build/docs; open build/docs/index.html"
	@echo "make reference  write the pages of the reference that are generated from the code"
	@echo "make lint      ruff and the import rules"
	@echo "make types     mypy --strict; for tests and benchmarks, names and arguments only"
	@echo "make format    format the code with ruff"
	@echo "make wheel     build the wheel into dist/"
	@echo "make release REPOSITORY=https://…  what is published: source and wheels in dist/, checked"
	@echo "make lock      write the versions of all installed packages into constraints.txt"
	@echo "make clean     remove the virtual environment and everything built"

demo: $(VENV)/.core
	$(BIN)/dragoman demo

# .ci/run chooses the tests of test-docs, too, so that they are collected only once.
CHOSEN ?= not slow and not commands
test: $(VENV)/.dev
	$(PYTEST) -m "$(CHOSEN)" $(PYTEST_ARGS)

test-room: room $(VENV)/.dev
	$(PYTEST) -m "not slow and not commands" $(PYTEST_ARGS) tests/$(ROOM)

# Checked before anything is installed.
ROOMS = $(filter-out %__pycache__ addons,$(patsubst tests/%/,%,$(wildcard tests/*/ tests/addons/*/)))
room:
	@test -n "$(ROOM)" -a -d "tests/$(ROOM)" || { \
	    echo "tests has no folder '$(ROOM)': choose ROOM from $(sort $(ROOMS)), or a folder of one, such as" \
	    "nn/attention" | fold -s -w 100 >&2; exit 1; }

test-docs: $(VENV)/.dev
	$(PYTEST) -m "commands and not slow" $(PYTEST_ARGS) tests/documentation tests/first_hour tests/addons/lecture

test-all: $(VENV)/.dev
	$(PYTEST) --hypothesis-profile=thorough $(PYTEST_ARGS)

test-levels: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tests/fixtures/levels.py -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Warnings, such as broken links, are errors.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -b html -n -W --keep-going -j 2 -q -d build/docs-cache docs build/docs
	@echo "build/docs/index.html"

reference: $(VENV)/.docs
	PYTHONPATH=src $(BIN)/python docs/generate.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: types-src types-tests

types-src: $(VENV)/.dev
	$(BIN)/mypy

types-tests: $(VENV)/.dev
	$(BIN)/mypy --config-file tests/mypy.ini

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

wheel: $(VENV)/.dev
	$(PIP) wheel . --no-deps --wheel-dir dist

# Links of the description lead to REPOSITORY. The documentation of the source distribution is built from its own files.
RELEASE = build/release
release: release-needs $(VENV)/.dev $(VENV)/.docs
	rm -rf dist $(RELEASE)
	DRAGOMAN_REPOSITORY=$(REPOSITORY) $(BIN)/python -m build --no-isolation --sdist --outdir dist
	mkdir -p $(RELEASE) && tar -xzf dist/dragoman-*.tar.gz -C $(RELEASE) --strip-components 1
	for processor in x86_64 aarch64 none; do DRAGOMAN_ENGINES=$$processor DRAGOMAN_REPOSITORY=$(REPOSITORY) \
	    $(BIN)/python -m build --no-isolation --wheel --outdir dist $(RELEASE) || exit 1; done
	$(BIN)/twine check --strict dist/*
	cd $(RELEASE) && $(abspath $(BIN))/sphinx-build -b html -n -W --keep-going -j 2 -q docs build/docs

# Checked before anything is installed: the wheels of both processors need a compiler for the other one.
release-needs:
	@test -n "$(REPOSITORY)" || { echo "say where links lead: make release REPOSITORY=https://github.com/OWNER/dragoman" >&2; exit 1; }
	@for processor in x86_64 aarch64; do \
	    test "$$(uname -m)" = $$processor || command -v $$processor-linux-gnu-gcc >/dev/null || { \
	    echo "there is no $$processor-linux-gnu-gcc, which compiles the engine for that processor: install it (in" \
	    "Debian, crossbuild-essential-arm64 or -amd64)" >&2; exit 1; }; done

# With these versions: PIP_CONSTRAINT=constraints.txt make test
lock: $(VENV)/.dev $(VENV)/.docs
	$(BIN)/python -m pip freeze --exclude-editable --exclude dragoman | sed 's/+cpu$$//' > constraints.txt

# The stamp files are touched last, so that an interrupted installation is repeated.
# The pip of a new venv is as old as its Python; newer versions install in half the time. A failed upgrade is ignored.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	-$(PIP) install --upgrade pip

$(VENV)/.core: pyproject.toml | $(BIN)/python
	@echo "installing dragoman into $(VENV) (a minute or two the first time)"
	$(PIP) install --editable '.[serve]'
	@touch $@

# Modules are compiled when the tests import them, because compiling all of torch, Ray and similar packages takes a
# minute, and the tests import only a small part of them.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing dragoman and its development tools into $(VENV) (a minute or two the first time)"
	$(PIP) install --no-compile --editable '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo "installing Sphinx into $(VENV)"
	$(PIP) install --no-compile --editable '.[docs,serve]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
