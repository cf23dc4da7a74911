PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BASE ?= p2p-labeldp-base

.PHONY: help install demo docs test lint types soak soak-containers clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

install: $(BIN)/.installed  ## a virtual environment in .venv with the package and its test tools

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[all]'
	touch $@

demo: install  ## 455 peers, each a process of its own, play one round; about 80 seconds
	$(BIN)/p2p-labeldp run

docs: install  ## the API reference, from the docstrings: build/api/index.html, read without a network
	$(BIN)/python docs/reference/build.py build/api

lint: install  ## style, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install  ## mypy, strict
	$(BIN)/mypy

test: lint types  ## everything that must hold; about eleven minutes
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 4 --dist loadfile

soak: install  ## real peers and learners are killed 200 times at instants and facts drawn beforehand; about 15 minutes
	$(BIN)/python tests/network/killing.py --kills 200

soak-containers: install  ## rounds of 20 containers, killed, paused, cut off; needs Docker, and root to make a base; about 15 minutes
	[ "$(BASE)" != p2p-labeldp-base ] || docker image inspect $(BASE) > /dev/null 2>&1 || configs/deploy/make-base $(BASE)
	PYTHON=$(BIN)/python configs/deploy/build-image $(BASE)
	$(BIN)/python tests/network/containers.py

clean:  ## remove what make made
	rm -rf $(VENV) build dist .coverage* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
