# Everything a checkout needs, and the commands of CI. The set-up itself is in tools/bootstrap.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
export MAKE_GOAL := $(or $(firstword $(MAKECMDGOALS)),help)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PY := .venv/bin/python
PYTEST := $(PY) -m pytest --durations=10
THALWEG := .venv/bin/thalweg
# One cargo profile everywhere, so that large dependencies such as parquet are built once.
CARGO := cargo --locked
RELEASE := --release --workspace

# Seconds for each driver of `make fuzz`.
FUZZ_SECONDS ?= 60

# Scenario of the demo: four mixes of large and medium flows from the ITC'18 study. A finished run is not run again.
DEMO := $(THALWEG) run studies/itc18-mixed-workload/mixes.toml

.PHONY: help
help: ## list the targets
	@echo "usage: make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## prepare everything: packages, .venv, release build (the others call it)
	@tools/bootstrap system venv engine

.PHONY: demo
demo: setup ## run the ITC'18 mixes on the simulator and say where the report is
	@$(DEMO)

.PHONY: test
test: test-setup test-build setup agent test-kernel lint test-all ## check everything as CI
	@tools/bootstrap left-out

.PHONY: test-under-load
test-under-load: ## the same, three times in a row, while four processes burn CPU beside it
	@for round in 1 2 3; do tools/under-load $(MAKE) test; done

.PHONY: test-setup
test-setup:
	@tools/bootstrap system lints browser java slurm image kernel bpf prometheus nginx

# Rust is compiled while Python's packages are downloaded.
.PHONY: test-build
test-build:
	@tools/together '$(CARGO) test $(RELEASE) --no-run' 'tools/bootstrap venv spark'

.PHONY: test-kernel
test-kernel: setup
	@tools/bootstrap quic uml vm

.PHONY: lint
lint: setup ## formatting, lints, types, layers, generated files
	@tools/bootstrap bpf
	@tools/together '$(MAKE) lint-rust' '$(MAKE) lint-python'

.PHONY: lint-rust
lint-rust:
	cargo fmt --all --check
	$(CARGO) clippy --quiet $(RELEASE) --all-targets -- -D warnings

.PHONY: lint-python
lint-python:
	$(PY) -m ruff check --quiet .
	$(PY) -m ruff format --check --quiet .
	$(PY) -m mypy
	$(PY) tools/check_layers.py
	$(PY) tools/check_words.py
	$(PY) tools/generate.py --check

.PHONY: test-rust
test-rust: setup ## Rust tests and doc examples
	@tools/bootstrap bpf
	$(CARGO) test $(RELEASE)

# The agent's tests wait for guests most of the time, so the others run in parallel with them. The lockstep is with the
# agent, with which it shares a build of libbpf.
AGENT = thalweg-agent thalweg-lockstep
RUST_PARTS = '$(CARGO) test --release $(AGENT:%=--package %)' '$(CARGO) test $(RELEASE) $(AGENT:%=--exclude %)'

# Most tests wait for programs that they start, so five parts run in parallel.
ADVICE = tests/python/advise
COUNTED = tests/python/advise/counting tests/python/studies tests/repository/test_policy_outcomes.py
COMPUTED = $(addprefix tests/python/,analysis plan records report scenario search synth)
PYTHON_PARTS = '$(PYTEST) $(patsubst %,--ignore=%,$(ADVICE) $(COUNTED) $(COMPUTED) tests/repository)' \
	'$(PYTEST) $(COMPUTED)' '$(PYTEST) $(ADVICE) --ignore=tests/python/advise/counting' '$(PYTEST) $(COUNTED)' \
	'$(PYTEST) tests/repository $(COUNTED:%=--ignore=%)'
.PHONY: test-python
test-python: setup ## Python tests, doc examples, and the report in Chromium
	@tools/bootstrap spark
	@tools/together $(PYTHON_PARTS)

# The studies have the lowest priority, unless THALWEG_NICE is set.
.PHONY: test-all
test-all: setup
	@tools/bootstrap bpf spark
	@tools/together $(PYTHON_PARTS) $(RUST_PARTS) 'nice -n $${THALWEG_NICE-10} $(MAKE) studies'

# Rust tests whose names contain "fuzz" try random input for about a second each; here for FUZZ_SECONDS.
.PHONY: fuzz
fuzz: setup ## try random and hostile input for ten minutes, on every parser (FUZZ_SECONDS=60 for each driver)
	@tools/bootstrap bpf
	THALWEG_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test $(RELEASE) fuzz
	THALWEG_FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTEST) tests/python/scenario/test_mutated_scenarios.py

.PHONY: studies
studies: setup ## run every study's quick set on the simulator: fails if a claim that held no longer holds (minutes)
	$(THALWEG) reproduce all --quick --check

.PHONY: generate
generate: setup ## write again what is generated: models, JSON Schema, reference docs, the studies' pages
	$(PY) tools/generate.py

.PHONY: docs
docs: setup ## build the documentation as a site in dist/site: open dist/site/index.html, no server needed
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "the site: file://$$PWD/dist/site/index.html"

.PHONY: agent
agent: setup ## build thalweg-agent into .venv/bin: loads congestion controllers in eBPF
	@tools/bootstrap bpf agent

.PHONY: agent-packages
agent-packages: setup ## build thalweg-agent for servers into dist/: a static tarball and a Debian package
	@tools/bootstrap bpf
	packaging/agent/build

.PHONY: bench
bench: setup ## measure the speed of simulator, reports, advice, imports and the agent (many minutes)
	@tools/bootstrap nginx
	@$(PY) bench/run.py
	@$(PY) bench/recording.py
	@$(PY) bench/acks.py
	@$(PY) bench/commands.py
	@$(PY) bench/pages.py
	@$(PY) bench/advising.py
	@$(PY) bench/importing.py
	@$(PY) bench/scaling.py
	@$(PY) bench/tuning.py --connections 80 --alone 16
	@$(PY) bench/tuning_guest.py

.PHONY: lockstep
lockstep: setup ## record the kernel's controllers again, for the replay in crates/cc (root)
	@tools/bootstrap bpf
	$(CARGO) run --quiet --release --package thalweg-lockstep -- --engine .venv/bin/thalweg-engine
	$(PY) tools/lockstep_guest.py

.PHONY: format
format: setup ## format Rust and Python
	cargo fmt --all
	$(PY) -m ruff check --quiet --fix .
	$(PY) -m ruff format --quiet .

.PHONY: wheel
wheel: setup ## build the wheel in dist/: pip install it anywhere
	PATH="$$PWD/.venv/bin:$$PATH" maturin build --release --strip --out dist

.PHONY: image
image: wheel ## build a container image with thalweg in dist/, as an OCI archive: podman load -i FILE
	@tools/bootstrap image
	PATH="$$PWD/.venv/bin:$$PATH" packaging/image/build

.PHONY: release
release: ## build a release from a clean clone into dist/thalweg-VERSION: wheel, .deb, tarball, site, checksums
	packaging/release

.PHONY: lock
lock: ## write the Python lock files again from pyproject.toml
	tools/lock

.PHONY: clean
clean: ## remove what builds leave behind; runs/ stays
	rm -rf target .venv .stamps dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find python tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
