# Needs Python 3.11 or newer and make; everything else goes into .venv.
#   make demo    a page of results in out/index.html
#   make test    linters, types, spelling, style and the whole test suite
#   make test-jax, make test-torch   the functions for JAX and PyTorch, each in an environment of its own
#   make docs    the documentation in out/docs/index.html
#   make lint    only the linters, types, spelling and style of English
#   make bench   ramify against its peers, on this machine
#   make lowest  the tests of the dependencies, with the lowest versions that pyproject.toml declares
#   make accuracy  digits on real robots beside Pinocchio's, against extended precision
#   make fuzz    damaged files and odd arrays for HOURS (1 by default)
#   make format  let the formatter rewrite the code
#   make clean   remove what the targets above have made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
CODE := src tests examples benchmarks docs/conf.py docs/gallery.py docs/prose.py docs/moving_picture.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-jax test-torch docs lint bench lowest accuracy fuzz format clean browser

help:
	@sed -n 's/^#   //p' $(firstword $(MAKEFILE_LIST))

# The stamps say what the environment holds: .run the package with its plots, .dev also the tools and the peers of the tests.
$(VENV)/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ramify needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25.1"
	$(PIP) --editable ".[plot]"
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) --group dev --group test --group docs
	@touch $@

demo: $(VENV)/.run
	$(BIN)/ramify demo

lint: $(VENV)/.dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/codespell src tests examples benchmarks docs *.md
	$(BIN)/python docs/prose.py

test: lint browser
	$(BIN)/python -m pytest

# What these libraries bring is too large for the environment of all tests.
test-jax test-torch: test-%:
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip --disable-pip-version-check install --quiet --editable ".[$*]" pytest pytest-xdist hypothesis casadi sympy gymnasium pillow
	.venv-$*/bin/python -m pytest -n 0 -W ignore::FutureWarning -W ignore::DeprecationWarning tests/extras/test_$*.py

# The tests of pages need Chromium: one that is there, named in RAMIFY_BROWSER or found, or Debian's where we may install it.
# Without one they fail and say so; they are never skipped.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name >/dev/null && exit; done; \
	if [ -n "$$RAMIFY_BROWSER" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium for the tests of pages" && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else echo "no browser found: install Chromium, or name one in RAMIFY_BROWSER; the tests of pages will fail" >&2; fi

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs out/docs
	@echo out/docs/index.html

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# Direct dependencies at their lowest versions, what these need as new as they take it; the peers of the tests come after them.
# Old releases warn of the newer ones that they use, so such warnings pass here.
LOWEST := .venv-lowest
LOWEST_BIN := $(LOWEST)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EXTRAS := plot,data,export,mjcf,stiff,study,symbolic,video,view,xacro
LOWEST_TESTS := $(addprefix tests/test_,$(addsuffix .py,mjcf viewer robot_files result cli run_plots study_files kernels))
lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST_BIN)/python -m pip --disable-pip-version-check install --quiet uv
	VIRTUAL_ENV=$(LOWEST) $(LOWEST_BIN)/uv pip install --quiet --resolution lowest-direct --editable ".[$(EXTRAS)]"
	VIRTUAL_ENV=$(LOWEST) $(LOWEST_BIN)/uv pip install --quiet pytest pytest-xdist hypothesis casadi pin example-robot-data
	$(LOWEST_BIN)/python -m pytest -W ignore::DeprecationWarning $(LOWEST_TESTS) --deselect tests/test_viewer.py::test_browsers_come_and_go

accuracy: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python tests/accuracy.py

HOURS ?= 1
fuzz: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python tests/fuzzing.py --hours $(HOURS)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

clean:
	rm -rf $(VENV) $(LOWEST) .venv-jax .venv-torch out .mypy_cache .ruff_cache .pytest_cache .hypothesis
