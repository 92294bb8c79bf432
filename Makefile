# The commands of a checkout. `make` alone lists them.
VENV := .venv
STAMP := $(VENV)/.set-up
unexport PYTHONDONTWRITEBYTECODE # each of some hundred processes would compile all files anew
CLUSTER := $(VENV)/.set-up-cluster
EXTRAS := cloud,demo,dev
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile # most is never imported
CLUSTER_TESTS := tests/cloud_tier/cluster

help:  ## list these targets
	@sed -n "s/^\([a-z-]*\):.*## /  make \1\t/p" Makefile

setup: $(STAMP)  ## bring all that demo and test need: .venv, Java, Spark, Delta

demo: setup  ## watch a small fleet agree, from sensor to lake
	$(VENV)/bin/lasp-edge demo

test: setup  ## format, lint, arrows and types, then every test
	@$(MAKE) --no-print-directory --jobs --output-sync collected types format lint arrows archive
	@$(MAKE) --no-print-directory tests

tests:
	$(VENV)/bin/python -m pytest -n 6 --dist loadscope --no-loadscope-reorder

wheel: $(VENV)/.made  ## build dist/lasp_edge-*.whl, which pip installs on any machine
	$(VENV)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

reference: setup  ## make pages of all public names, from their docstrings: reference/index.html
	$(VENV)/bin/python -m simulations.reference reference

test-cluster: $(CLUSTER)  ## a Spark cluster, Spark Connect, an object store, killed drivers
	$(VENV)/bin/python -m pytest -n 2 --dist loadscope -o python_files="on_*.py" $(CLUSTER_TESTS)

format:
	$(VENV)/bin/ruff format --check .

lint:
	$(VENV)/bin/ruff check .

types:
	$(VENV)/bin/mypy

arrows:
	$(VENV)/bin/lint-imports

# Compiles the tests once, in place of once in each process of pytest, and takes as long as types
# beside it. What cannot be loaded is told when the tests run.
collected:
	@$(VENV)/bin/python -m pytest --collect-only -qq >/dev/null 2>&1 || true

# Another Java than at the set-up, or another place of the checkout, needs another archive of Spark's
# classes. Without one each JVM of the tests loads and verifies them one by one.
archive:
	@$(VENV)/bin/python -m cloud_tier.spark.prefetch || true

clean:  ## remove .venv and what the tools left; the cache stays
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made: .ci/make_venv
	.ci/make_venv $(VENV)
	@touch $@

$(STAMP): $(VENV)/.made pyproject.toml
	$(VENV)/bin/python $(INSTALL) -e ".[$(EXTRAS)]"
	$(VENV)/bin/python -m cloud_tier.spark.prefetch
	@touch $@

$(CLUSTER): $(STAMP)
	$(VENV)/bin/python $(INSTALL) -e ".[cluster]"
	@touch $@

.PHONY: help setup demo test tests wheel reference test-cluster format lint types arrows collected archive clean
