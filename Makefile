# The whole contributor interface. Every target does its own set-up; a second call takes seconds.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# Named on the command line it is what runs, or nothing does; else smoke, or starter where boards can't be had.
SUITE ?=
JOBS ?= $(shell nproc)
COPPERBENCH := .venv/bin/copperbench
PYTEST := .venv/bin/python -m pytest

.PHONY: help environment setup engine-stop images fixtures local-model local-model-stop bench rescore doctor gate \
	validate check unit integration attacks fuzz fuzz-smoke test crash kicad10 slow prove-image figures format schemas clean

help: ## Say what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

environment: ## Virtual environment from the lock
	@scripts/environment

setup: environment ## Environment, and a Docker engine if none answers
	@scripts/engine start

engine-stop: ## Stop the engine that setup started
	@scripts/engine stop

images: setup ## Build the container images that changed
	@$(COPPERBENCH) images build

fixtures: environment ## Get the pinned boards and verify every byte
	@$(COPPERBENCH) fixtures sync

local-model: environment ## Serve a small model on this machine's loopback, without key or network: MODEL=local:smollm2-135m
	@scripts/local-model start '$(or $(MODEL),local:smollm2-135m)'

local-model-stop: ## Stop that server
	@scripts/local-model stop

bench: images $(if $(filter local:%,$(MODEL)),local-model) ## Proof without a model, or with MODEL=provider:name a real run (SUITE, REPEATS, JOBS)
	@suite=$$(scripts/suite $(SUITE)) && \
	if [ -n "$(MODEL)" ]; then \
		$(COPPERBENCH) run --suite "$$suite" --model '$(MODEL)' --jobs $(JOBS) $(if $(REPEATS),--repeats $(REPEATS)); \
	else \
		$(COPPERBENCH) prove --suite "$$suite" --jobs $(JOBS); \
	fi
	@$(COPPERBENCH) images build
	@$(COPPERBENCH) leaderboard

rescore: images ## Grade stored evidence again: RESULTS=results/2026-01-31, KICAD=10 for the second environment
	@$(COPPERBENCH) rescore '$(or $(RESULTS),results)' --jobs $(JOBS) $(if $(KICAD),--kicad $(KICAD))

doctor: environment ## Tell what is there and what is missing; compass's gate
	@$(COPPERBENCH) doctor
	@.venv/bin/compass doctor

gate: environment ## compass's corpora, robustness and seeded bugs: no language model, no network
	@.venv/bin/compass bench
	@.venv/bin/compass redteam --attack
	@.venv/bin/compass taskbench validate

validate: fixtures ## Check tasks, suites and fixtures
	@$(COPPERBENCH) validate

check: environment ## Format, lint, types, import rules, generated files
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/ruff check --quiet .
	@.venv/bin/mypy
	@.venv/bin/python -m schema.export --check
	@$(PYTEST) tests/unit/test_imports.py

unit: environment ## Fast tests, no engine
	@$(PYTEST) tests/unit -n $(JOBS)

integration: images fixtures ## Tests with a real engine, real kicad-cli and real boards
	@$(PYTEST) tests/integration -m 'not alone' -n $$(($(JOBS) + 1)) --dist loadfile
	@$(PYTEST) tests/integration -m alone

attacks: images fixtures ## Every attack by a hostile agent; ATTACKS='leaks hooks' for families and names
	@.venv/bin/python -m tests.attacks $(ATTACKS)

fuzz-smoke: environment ## Play a fixed sample of fuzzed cases to each reader of hostile bytes
	@.venv/bin/python -m tests.fuzz --sample --jobs $(JOBS) || [ $$? = 3 ]  # 3: no atheris on this machine

fuzz: environment ## The same for SECONDS each (default 600); TARGETS='sexpr archive' for some
	@.venv/bin/python -m tests.fuzz --seconds $(or $(SECONDS),600) --jobs $(JOBS) $(TARGETS)

test: check unit integration fuzz-smoke attacks ## Everything CI runs

kicad10: setup fixtures ## Build the second environment (KiCad 10) and hold it against the reference
	@$(COPPERBENCH) images build --kicad 10
	@$(PYTEST) tests/integration/test_kicad10.py

crash: images fixtures ## Kill a suite at every step and at 30 random moments; the same command must complete it
	@.venv/bin/python -m tests.crash.chaos

slow: images fixtures ## Integration tests that take minutes each, such as a 70 MB board
	@$(PYTEST) tests/integration -m slow

prove-image: images ## Compare the stripped KiCad image with a full install, on COPPERBENCH_FIXTURE_MIRROR's boards
	@.venv/bin/python -m tests.integration.prove_kicad "$$COPPERBENCH_FIXTURE_MIRROR"

figures: images fixtures ## Measure overhead, grading, rescoring and the gateway; prints ratios
	@.venv/bin/python bench/overhead.py
	@.venv/bin/python bench/rescore.py
	@PYTHONPATH=. .venv/bin/python bench/gateway.py

format: environment ## Format and mend what can be mended
	@.venv/bin/ruff format --quiet .
	@.venv/bin/ruff check --quiet --fix .

schemas: environment ## Regenerate the JSON Schemas
	@.venv/bin/python -m schema.export

clean: ## Remove what was generated, but not results
	@scripts/local-model stop >/dev/null
	@rm -rf .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
