# Every target works on a fresh clone with Python 3.11 or newer: .venv is made, and made anew when pyproject.toml changes.

PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
BIN := .venv/bin
CHECK_PYTHON = if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=/path/to/python3.11" >&2; exit 1; fi
# What meets the dependencies most closely: the agent, patterns, every transport, the HTTP client, the plugin and its reports.
LOWEST := $(addprefix tests/test_,agent_graph.py http_transport.py matchers.py mcp_transports.py openai_compatible.py plugin_html.py \
	plugin_reruns.py plugin_xdist.py trace_html.py)
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pytest-opsagent
INSPECTOR := $(CACHE)/inspector-2.12.0
# It needs a newer Node than most machines have, so npm brings one along.
NODE := node@22.22.0
SCRIPTS := k3d/bootstrap.sh k3d/teardown.sh k3d/no-docker/build.sh k3d/no-docker/config/node.sh live/run.sh .ci/run
FUZZED := commands replies lines

.DEFAULT_GOAL := help
.PHONY: help eval mutate test fuzz demo lint lowest guard-report inspector live-local cluster-up cluster-down clean \
	k8s-real k8s-up k8s-down test-k8s-real

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

eval: .venv/.installed ## Run the shipped scenarios with scripted models and write report.html
	$(BIN)/pytest --ops-mode=mock scenarios --html=report.html --self-contained-html

mutate: .venv/.installed ## Run the shipped scenarios without each rule that fires: one of them must miss it
	$(BIN)/pytest --ops-mode=mock --ops-mutate-guards --ops-guard-coverage scenarios

test: unit .venv/.installed ## Run the project's own tests
	$(BIN)/pytest -n 2 -m e2e

unit: .venv/.installed ## Run those that take under three minutes together
	$(BIN)/pytest -n 2 -m "not e2e"

fuzz: .venv/.installed ## Try the properties of tests/fuzz on many more inputs than in CI, for some minutes
	$(BIN)/pytest -p no:cacheprovider -s --hypothesis-profile=fuzz tests/fuzz
	@if $(BIN)/python -m pip --disable-pip-version-check install --quiet --only-binary :all: --group fuzz 2>/dev/null; then \
		set -e; for target in $(FUZZED); do $(BIN)/python tests/fuzz/atheris_targets.py $$target; done; \
	else echo "atheris cannot be installed for this Python on this machine: its targets are left out, the rest has run."; fi

demo: .venv/.installed ## Run the three demo scenarios and write trace.html
	$(BIN)/mcp-ops demo

lint: .venv/.installed ## Check style, types, imports and shell scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck $(SCRIPTS)

lowest: ## Run the shipped scenarios and a few tests with the lowest versions that pyproject.toml allows
	@$(CHECK_PYTHON)
	rm -rf .venv-lowest
	"$(PYTHON)" -m venv .venv-lowest
	@echo '*' >.venv-lowest/.gitignore
	"$(PYTHON)" -c 'import re, tomllib; \
		wanted = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]; \
		print("\n".join(re.sub(r">=([^,]+).*", r"==\1", each) for each in wanted))' >.venv-lowest/versions
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet 'pip>=25.1'
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet --constraint .venv-lowest/versions \
		--editable . --group test
	.venv-lowest/bin/pytest -n 2 --ops-mode=mock scenarios $(LOWEST)

guard-report: .venv/.installed ## Measure the guards both ways: attacks that pass, harmless calls that are refused
	$(BIN)/python tests/guard_report.py

inspector: ## Install the MCP Inspector from npm into the user's cache (300 MB), for the test that uses it
	@command -v npm >/dev/null || { echo "npm is needed: install Node with npm" >&2; exit 1; }
	@test -e "$(INSPECTOR)/.installed" || { rm -rf "$(INSPECTOR)" && mkdir -p "$(INSPECTOR)" && \
		npm install --prefix "$(INSPECTOR)" --no-audit --no-fund --loglevel=error \
			"@modelcontextprotocol/inspector@$(patsubst inspector-%,%,$(notdir $(INSPECTOR)))" "$(NODE)" && \
		"$(INSPECTOR)/node_modules/.bin/node" --version && touch "$(INSPECTOR)/.installed"; }

live-local: ## Give the guardrail scenarios to a small real model on this machine, without internet
	PYTHON="$(PYTHON)" live/run.sh

cluster-up: ## Create the demo cluster (k3d), or complete what is there
	k3d/bootstrap.sh

cluster-down: ## Delete the demo cluster
	k3d/teardown.sh

k8s-real: ## Build a real Kubernetes from Debian packages, for machines without Docker
	k3d/no-docker/build.sh

k8s-up: .venv/.installed k8s-real ## Start that Kubernetes with the demo's workloads; pods need root
	$(BIN)/python k3d/no-docker/cluster.py up

k8s-down: .venv/.installed ## Stop it
	$(BIN)/python k3d/no-docker/cluster.py down

test-k8s-real: .venv/.installed k8s-real ## Run the tests that need a real Kubernetes
	$(BIN)/pytest tests/real_k8s

clean: ## Remove what these targets made
	rm -rf .venv .venv-live .venv-lowest runs report.html trace.html

.venv/.installed: pyproject.toml
	@$(CHECK_PYTHON)
	"$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip --disable-pip-version-check install --quiet 'pip>=25.1'
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --editable . --group dev
	@touch $@
