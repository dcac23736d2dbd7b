# Two commands matter: `make demo` and `make test`. Everything else stands beside them.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCAL_STAMP := $(VENV)/.installed-local
BOLT_STAMP := $(VENV)/.installed-bolt
SCALE_STAMP := $(VENV)/.installed-scale
DOCS_STAMP := $(VENV)/.installed-docs
SAMPLE := .mara-demo

.PHONY: demo test test-slow test-model local bolt scale soak lint format dev docs drawings setup lock bench clean

demo: setup
	@$(BIN)/mara demo --workspace $(SAMPLE)

test: setup
	@$(BIN)/python -m pytest -m "not slow and not model" -n 4 --dist loadfile

test-slow: setup bolt scale
	@$(BIN)/python -m pytest -m slow -n 2 --dist loadfile -o faulthandler_timeout=0

# With a real model, the packaged one: under ten minutes on two cores.
test-model: local
	@$(BIN)/python -m pytest -m model tests/model -o faulthandler_timeout=0

# Kills, mutated replies and many threads, whole: an hour at most.
soak: setup
	@$(BIN)/python -m pytest -m soak --soak -n 2 --dist loadfile -o faulthandler_timeout=0

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Studio on the sample workspace; a key or a server in the environment is used. MARA_SOURCES=FOLDER: may be indexed.
dev: setup
	@test -d $(SAMPLE) || $(BIN)/mara demo --workspace $(SAMPLE)
	@MARA_WORKSPACE=$(SAMPLE) $(BIN)/langgraph dev $(ARGS)

# The documentation as a site, in build/site, with the references that are made from the code.
docs: setup
	@$(MAKE) --no-print-directory $(DOCS_STAMP)
	@$(BIN)/python -m docs.site
	@echo "build/site/index.html"

$(DOCS_STAMP): requirements-docs.lock
	@echo "Installing the packages of requirements-docs.lock (a generator of sites, and Mermaid, 53 MB)"
	@if ! { command -v uv >/dev/null 2>&1 \
	    && uv pip install --quiet --python $(BIN)/python --no-deps --only-binary :all: -r requirements-docs.lock; } \
	  && ! $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	    -r requirements-docs.lock; then \
	  echo "No site on this machine: the packages of requirements-docs.lock cannot be installed (see above)." >&2; exit 2; \
	fi
	@touch $@

# The drawings and the table of figures in the pages that stand there for readers of the repository.
drawings: setup
	@$(BIN)/python -m docs.site.sections README.md docs/*.md

bench: setup
	@$(BIN)/python -m benchmarks.embedding

# An environment that was moved, or whose interpreter is gone, is made anew.
setup:
	@if [ -e $(STAMP) ] && ! { [ "$$(cat $(STAMP))" = "$(CURDIR)" ] && $(BIN)/python -c '' 2>/dev/null; }; then \
	  rm -rf $(VENV); \
	fi
	@$(MAKE) --no-print-directory $(STAMP)

# Installed again whenever the lock or the project file is newer than the last installation.
$(STAMP): requirements.lock pyproject.toml
	@set -e; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  python=; \
	  for candidate in $${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do \
	    if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      python=$$candidate; break; \
	    fi; \
	  done; \
	  if [ -z "$$python" ]; then \
	    echo "mara needs Python 3.11 or newer with venv; name one: make demo PYTHON=/path/to/python3.11" >&2; exit 2; \
	  fi; \
	  echo "Creating $(VENV) with $$($$python --version)"; \
	  rm -rf $(VENV); $$python -m venv $(VENV); \
	fi; \
	if command -v uv >/dev/null 2>&1 \
	  && uv pip install --quiet --python $(BIN)/python --compile-bytecode --no-deps -r requirements.lock \
	  && uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .; then :; \
	else \
	  echo "Installing the packages of requirements.lock with pip (about a minute)"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi; \
	echo "$(CURDIR)" > $(STAMP)

# The packages of a local chat model and of the multilingual embedding model, beside the others: nothing else needs them.
local: setup
	@$(MAKE) --no-print-directory $(LOCAL_STAMP)

$(LOCAL_STAMP): requirements-local.lock
	@echo "Installing the packages of requirements-local.lock (a model server and two models, about 220 MB)"
	@if ! { command -v uv >/dev/null 2>&1 \
	    && uv pip install --quiet --python $(BIN)/python --no-deps --only-binary :all: -r requirements-local.lock; } \
	  && ! $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	    -r requirements-local.lock; then \
	  echo "No local model on this machine: the packages of requirements-local.lock cannot be installed (see above)." >&2; \
	  echo "xllamacpp has wheels for Linux, macOS and Windows; every other command works without them." >&2; exit 2; \
	fi
	@touch $@

# The Bolt endpoint of the slow tests, beside the others: without it, they are skipped and say so.
bolt: setup
	@$(MAKE) --no-print-directory $(BOLT_STAMP)

$(BOLT_STAMP): requirements-bolt.lock
	@echo "Installing the packages of requirements-bolt.lock (a Bolt endpoint for tests, about 97 MB)"
	@if { command -v uv >/dev/null 2>&1 \
	    && uv pip install --quiet --python $(BIN)/python --no-deps --only-binary :all: -r requirements-bolt.lock; } \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	    -r requirements-bolt.lock; then \
	  touch $@; \
	else \
	  echo "No Bolt endpoint on this machine (see above): the tests of graph servers are skipped." >&2; \
	fi

# The engines past one machine, beside the others: only `MARA_VECTORS=mapped` and the like need them, and slow tests.
scale: setup
	@$(MAKE) --no-print-directory $(SCALE_STAMP)

$(SCALE_STAMP): requirements-scale.lock
	@echo "Installing the packages of requirements-scale.lock (faiss, a client of Qdrant)"
	@if { command -v uv >/dev/null 2>&1 \
	    && uv pip install --quiet --python $(BIN)/python --no-deps --only-binary :all: -r requirements-scale.lock; } \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	    -r requirements-scale.lock; then \
	  touch $@; \
	else \
	  echo "No engines past one machine here (see above): their tests are skipped." >&2; \
	fi

# The lock leaves out sentence-transformers, and so torch, and playwright: see [tool.uv] in pyproject.toml.
lock:
	uv pip compile --universal --python-version 3.11 --extra embedded --extra documents --extra push --extra mcp --extra auth --extra serve --extra graph --extra otel --group dev pyproject.toml \
	  --output-file requirements.lock --no-annotate --custom-compile-command "make lock"
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*p["local"], *p["multilingual"], sep="\n")' \
	  | uv pip compile --universal --python-version 3.11 --no-deps - \
	  --output-file requirements-local.lock --no-annotate --custom-compile-command "make lock"
	uv pip compile --universal --python-version 3.11 --group pyproject.toml:bolt \
	  --output-file requirements-bolt.lock --no-annotate --custom-compile-command "make lock"
	uv pip compile --universal --python-version 3.11 --group pyproject.toml:docs --constraint requirements.lock \
	  --no-annotate --no-header | grep -vxFf requirements.lock > requirements-docs.lock
	uv pip compile --universal --python-version 3.11 --extra postgres --extra qdrant --extra large pyproject.toml \
	  --constraint requirements.lock --no-emit-package mara-rag --no-annotate --no-header \
	  | grep -vxFf requirements.lock > requirements-scale.lock

clean:
	rm -rf $(VENV) $(SAMPLE) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .langgraph_api
