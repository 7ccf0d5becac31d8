# The two commands of a fresh machine are `make demo` and `make test`. Stamp files in .venv remember what was
# installed, so that nothing is installed twice and a changed pyproject.toml is noticed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two test processes with one thread each use two cores better than one process with two threads.
JOBS ?= 2

.PHONY: demo test check format scripts wheel site fuzz sanitize clean

demo: $(VENV)/.installed
	$(BIN)/regard demo

test: $(VENV)/.tested-with
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

check: $(VENV)/.tested-with
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) scripts HOW=--check
	$(MAKE) site
	$(MAKE) wheel
	$(MAKE) test

# docs/ as pages in site/, with a search; what links to nothing fails. `python -m http.server -d site` shows them.
# With --quiet mkdocs would not count what it does not say.
site: $(VENV)/.tested-with
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict > $(VENV)/site.log 2>&1 || { grep -E '^(WARN|ERR|Abort)' $(VENV)/site.log; exit 1; }

# What is shared, in dist/: the sources, and a wheel with the compiled parts in it, for every Python. auditwheel
# finds out on which Linuxes it runs, and names it so.
wheel: $(VENV)/.tested-with
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist/plain > $(VENV)/wheel.log 2>&1 || { tail $(VENV)/wheel.log; exit 1; }
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --strip --wheel-dir dist dist/plain/*.whl
	$(BIN)/auditwheel show dist/*.whl
	mv dist/plain/*.tar.gz dist && rm -r dist/plain

# The readers of foreign bytes under hostile input; SECONDS is the time of all of them together.
SECONDS ?= 600
fuzz: $(VENV)/.tested-with
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS) --jobs $(JOBS)

# The compiled parts built with sanitizers, under their tests.
sanitize: $(VENV)/.tested-with
	$(BIN)/python tests/sanitize.py address
	$(BIN)/python tests/sanitize.py thread

format: $(VENV)/.tested-with
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(MAKE) scripts HOW=--write

# The format of the pages' scripts. It takes npm, which nothing else here does: where that is missing, or its
# registry cannot be reached, the rest goes on without.
HOW ?= --check
PRETTIER := $(VENV)/node/node_modules/.bin/prettier
scripts:
	@$(MAKE) -s $(PRETTIER) || echo "the format of the pages' scripts was not looked at: it takes npm"
	@test ! -e $(PRETTIER) || $(PRETTIER) --print-width 110 --log-level warn $(HOW) 'regard/**/*.js'

$(PRETTIER): $(VENV)/.created
	npm install --silent --no-fund --no-audit --prefix $(VENV)/node prettier@3.10.1
	touch $@

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Regard needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt setup.py $(wildcard regard/*/native/*)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.tested-with: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt 'regard[dev]'  # which is there: not built again
	touch $@
