# Every target makes the virtual environment that it needs. PYTHON chooses the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
# One pytest worker a core, one thread a worker: many small tensors gain nothing from more. Tests take from half a
# millisecond to ten seconds, so a worker that has none left takes some of the other.
WORKERS ?= 2
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 10

# Some images set it; then each of the many processes that the tests start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all lint types format wheel clean

help:
	@echo "make demo      train on the built-in corpus and show what came out"
	@echo "make test      the tests that every change must pass, in minutes"
	@echo "make test-all  those and the slow ones"
	@echo "make lint      ruff and the import rules"
	@echo "make types     mypy --strict"
	@echo "make format    let ruff put the code into shape"
	@echo "make wheel     build the wheel into dist/"
	@echo "make clean     remove the virtual environment and everything built"

demo: $(VENV)/.core
	$(BIN)/dragoman demo

test: $(VENV)/.dev
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-all: $(VENV)/.dev
	$(PYTEST) $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

wheel: $(VENV)/.dev
	$(PIP) wheel . --no-deps --wheel-dir dist

# The stamps are touched last, so that an interrupted installation is taken up again.
# A venv's own pip is as old as its Python; newer ones install in half the time. It does without where there is none.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	-$(PIP) install --upgrade pip

$(VENV)/.core: pyproject.toml | $(BIN)/python
	@echo "installing dragoman into $(VENV) (a minute or two the first time)"
	$(PIP) install --editable .
	@touch $@

# What the tests need is compiled as it is imported: of torch, Ray and their like that is little, and all take a minute.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing dragoman and its development tools into $(VENV) (a minute or two the first time)"
	$(PIP) install --no-compile --editable '.[dev]'
	@touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
