# falsify: make demo and make test set up everything they need in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
STAMP_DEV := $(VENV)/installed-dev
DEV := falsify-eval==0.2.0 hypothesis jsonschema mypy pytest ruff scipy zstandard
MUTMUT := mutmut==3.8.1

.PHONY: help install fmt lint type test check demo bench calibrate fuzz mutate clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "falsify needs Python 3.10 or newer; set PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml falsify_cli/version.py | $(BIN)/python
	@echo "installing falsify into $(VENV) (a minute or so) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(STAMP_DEV): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(DEV)
	@touch $@

install: $(STAMP) ## Install falsify into .venv

fmt: $(STAMP_DEV) ## Format the code
	$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format .

lint: $(STAMP_DEV) ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(STAMP_DEV) ## Check types
	$(BIN)/mypy

test: $(STAMP_DEV) ## Run the tests
	$(BIN)/python -m pytest

check: lint type test ## lint, type and test

# The second run fails its gate, which is what it is there to show: exit 1 is FAIL.
demo: $(STAMP) ## Run the gate on an honest run and on a cheat
	@for run in bm25 popular; do \
	  command="falsify gate fixtures/stdlib-module/$$run.run fixtures/stdlib-module/qrels.txt"; \
	  echo "$$ $$command"; $(BIN)/$$command; code=$$?; echo "exit code $$code"; echo; \
	  test $$code -le 3 || exit $$code; \
	done

bench: $(STAMP) ## Time and memory against pytrec_eval, as ratios (20 minutes)
	$(BIN)/python tests/bench.py

calibrate: $(STAMP) ## Measure how often the gate errs (20 minutes on two cores)
	$(BIN)/python tests/calibrate.py

fuzz: $(STAMP_DEV) ## Read mutated files for a minute
	$(BIN)/python tests/fuzz.py --seconds 60

mutate: $(STAMP_DEV) ## Break the core line by line, and see the tests fail (an hour)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(MUTMUT)
	$(BIN)/mutmut run
	$(BIN)/mutmut results

clean: ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis mutants build dist
