# make demo: a federation on embedded data.   make test: every check.   Both create .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# One thread per process: the checks run side by side.
export OMP_NUM_THREADS := 1

.PHONY: demo test check format bench clean

demo: $(VENV)/.installed
	$(BIN)/fedfuse compare digits --methods fedavg,feddf --seeds 0,1,2 --out runs/demo --overwrite

test: check
	$(BIN)/python -m pytest -n $(CORES)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/round_overhead.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info

# torch first and by itself, so that nothing else drags in another build of it.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(BIN)/python -c pass 2>/dev/null || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@
