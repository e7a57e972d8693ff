# Everything a checkout needs, made by the first target that needs it. Only Python 3.11+ and make are assumed.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test lint types check docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("specclient needs Python 3.11 or newer; call: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1,<26.2'

# Where to look for torch first, if not where everything else comes from: on Linux without a GPU the index
# of torch's CPU builds saves 4 GB of CUDA.
TORCH_INDEX ?=

# What the demo needs: the package with its engine and command line.
$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing specclient and its engine into $(VENV) (once, a few minutes)" >&2
	@if [ -n "$(TORCH_INDEX)" ]; then $(INSTALL) --no-deps --index-url "$(TORCH_INDEX)" torch; fi
	@$(INSTALL) --editable '.[local,cli]'
	@touch $@

# What the tests need on top: the test tools, and the official SDKs that the middleware goes under.
$(VENV)/.dev: $(VENV)/.demo
	@echo "installing the test tools and the official SDKs into $(VENV) (once, a few minutes)" >&2
	@$(INSTALL) --editable '.[all]' --group dev --group sdks
	@# instructor declares versions of jiter and rich that exclude the newest openai SDK; it runs beside it.
	@$(INSTALL) --no-deps instructor
	@touch $@

demo: $(VENV)/.demo ## regenerate a real file with a real model, with and without its prediction
	@$(BIN)/specclient edit examples/demo/inventory.py --instruction-file examples/demo/instruction.txt --provider local --compare

test: $(VENV)/.dev ## run the whole suite
	@$(BIN)/python -m pytest

lint: $(VENV)/.dev ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, strict
	@$(BIN)/mypy

check: lint types test ## all of it: what a change must pass

clean: ## remove what make made; the models stay in the user's cache
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
