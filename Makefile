# `make` alone lists the targets. Arguments for pytest: make test ARGS='-k queue'
.POSIX:
.PHONY: help install test lint format bench chaos lock docs

ARGS =
ROUNDS = 5
SEED = 0

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1	\2/p' Makefile | expand -t 10

install: ## fleet and its development tools, into .venv
	@sh scripts/install --dev

test: ## everything a change must pass
	@sh scripts/test $(ARGS)

lint: ## style, types, layers of imports, shell scripts
	@sh scripts/lint

format: install ## write the code in the project's format
	.venv/bin/python -m ruff check --fix .
	.venv/bin/python -m ruff format .

bench: install ## the benchmarks
	.venv/bin/python bench/run.py $(ARGS)

chaos: install ## only the tests that break things on purpose: make chaos ROUNDS=50 SEED=7
	@bd=$$(sh scripts/tools --bd-path); \
	if [ -z "$$FLEET_TEST_BD" ] && [ -x "$$bd" ]; then export FLEET_TEST_BD="$$bd"; fi; \
	FLEET_CHAOS_ROUNDS="$${FLEET_CHAOS_ROUNDS:-$(ROUNDS)}" FLEET_CHAOS_SEED="$${FLEET_CHAOS_SEED:-$(SEED)}" \
	.venv/bin/python -m pytest tests/chaos $(ARGS)

lock: ## pin the dependencies anew
	@sh scripts/lock $(ARGS)

docs: install ## write the reference pages from the code
	.venv/bin/python scripts/reference.py
