# make demo: a federation on embedded data.   make test: every check.   Both set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
ENGINES := .venv-engines
TRACKERS := .venv-trackers
AUDIT := .venv-audit
RUN := $(VENV)/bin/python -m
PIP := $(RUN) pip --quiet --disable-pip-version-check
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

.PHONY: demo test test-browser test-long test-docs test-engines test-trackers fuzz coverage check format docs index bench bench-quick bench-merges bench-report bench-privacy bench-sums bench-situations reveals attacks cluster-model check-methods same-bits soak kills kills-of-fusions crashes audit clean

demo: $(VENV)/installed
	$(RUN) fedfuse compare digits --methods fedavg,feddf --seeds 0,1,2 --out runs/demo --overwrite

test: check
	$(RUN) pytest -n $(CORES)

# Tests that start many processes: parts from outside with workers, killed and resumed; and examples/notebook.ipynb in a kernel.
test-long: $(VENV)/installed-dev
	$(RUN) pytest -n $(CORES) -m long

# The report and the live page in a real browser; what it saw is in build/screenshots. Debian's chromium and
# chromium-driver are installed if they are missing and that is possible.
test-browser: $(VENV)/installed-dev
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y chromium chromium-driver >/dev/null; } || \
		{ echo "the tests of pages need chromium and chromedriver; on Debian: sudo apt-get install chromium chromium-driver"; exit 2; }
	$(RUN) pytest -m browser tests/browser

# A million damaged files, experiments and messages for the readers of all of them; another seed, other cases. Ctrl-C prints
# what there is so far. In the engines' environment, because messages are Flower's. TARGETS="csv_files npz_files" tries only some.
SEED ?= 1
fuzz: $(ENGINES)/installed
	$(ENGINES)/bin/python -m tests.fuzzing --cases 1000000 --seed $(SEED) $(TARGETS)

# The tests again, with the share of lines and branches that they run in this process and its test workers; fails below
# fail_under of pyproject.toml. Not part of test, because watching every line takes a third longer.
coverage: $(VENV)/installed-dev
	$(RUN) pytest -n $(CORES) --cov --cov-report=json

# The same bits and the same faults on Ray and Flower, in process and as real processes on this machine. They have an
# environment of their own, because they want older versions of some packages than the constraints have. A file's tests
# share one deployment, so that files are what is run side by side, in the order that tests/flower/conftest.py gives them.
test-engines: $(ENGINES)/installed
	FEDFUSE_DEPLOYMENT=1 $(ENGINES)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/engines tests/flower tests/cli/test_surface.py tests/cli/test_parsing.py

# MLflow, Weights & Biases and Trackio, read back through their own interfaces; nothing leaves the machine. They have an
# environment of their own: half a gigabyte, and older versions of some packages than the constraints have.
test-trackers: $(TRACKERS)/installed
	$(TRACKERS)/bin/python -m pytest tests/report/trackers tests/experiment/test_tracking.py

check: $(VENV)/installed-dev
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(VENV)/bin/python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

format: $(VENV)/installed-dev
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

# The pages of the API, of all commands and of all keys, from the code (a test says when they are no longer what it says), and
# all pages as a site that opens from the disk: build/site/index.html.
docs: $(VENV)/installed-dev
	$(VENV)/bin/python docs/write_api.py
	$(VENV)/bin/python docs/write_reference.py
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet

# Does all that README and docs say, page by page, in a folder of its own; experiments are cut to two short rounds, unless
# WHOLE=1. What is not run says why on its page.
test-docs: $(VENV)/installed-dev
	$(if $(WHOLE),FEDFUSE_WHOLE_PAGES=1) $(RUN) pytest -n $(CORES) -m pages tests/docs

# Every method in different situations: the table of docs/which-method.md. Some minutes of one core; goes on if interrupted.
bench-situations: $(VENV)/installed
	$(RUN) benchmarks.which_method --write

# What fedfuse methods and fedfuse models list, from the code; a test says when it is no longer what the code says.
index: $(VENV)/installed
	$(RUN) fedfuse.experiment.write_index

# Workloads W1 to W8 against hand-written loops and against peers, which get environments of their own in .bench; writes
# docs/performance.md. An interrupted bench goes on. bench-quick: a first look, smaller and without peers.
bench: $(VENV)/installed
	$(RUN) benchmarks --page docs/performance.md

bench-quick: $(VENV)/installed
	$(RUN) benchmarks --quick --no-peers --turns 1

# Four tasks of one small network, merged in every way: the table of docs/merges.md. A minute and a half of one core.
bench-merges: $(VENV)/installed
	$(RUN) benchmarks.merging --write

# What privacy costs in accuracy, bytes and time: the tables of docs/privacy.md. MNIST from FEDFUSE_DATA; about an hour of
# one core, and an interrupted one goes on. TABLES="speed digits" makes only some.
bench-privacy: $(VENV)/installed-dev
	$(RUN) benchmarks.privacy $(TABLES) --write

# What masks of secure sums cost: the table of docs/secure-sums.md. A minute of one core, in the engines' environment.
bench-sums: $(ENGINES)/installed
	$(ENGINES)/bin/python -m benchmarks.secure_sums --write

# What left the parties of runs on digits, attacked with and without privacy, and what each method sends: the tables of
# docs/audit.md and docs/reveals.md. Some minutes of one core, and an interrupted one goes on. TABLES=methods makes only that.
reveals: $(VENV)/installed-dev
	$(RUN) benchmarks.reveals $(TABLES) --write

# How large the page of fedfuse report is for 20 runs of 200 rounds, and how long it takes; some seconds.
bench-report: $(VENV)/installed
	$(RUN) benchmarks.report

# Every defence against every attack with 0, 10, 20 and 40 % of hostile clients, on digits and, if FEDFUSE_DATA or a cache has it,
# MNIST: the tables of docs/robustness.md. An interrupted one goes on; remove .attacks to measure anew.
attacks: $(VENV)/installed
	$(RUN) benchmarks.attacks --jobs $(CORES) --write

# What each piece of a round costs here, what that predicts for a cluster, and whether it is true of rounds on one and two
# processes and Ray nodes: the tables of docs/cluster.md. In the engines' environment, because of Ray.
cluster-model: $(ENGINES)/installed
	$(ENGINES)/bin/python -m benchmarks.cluster --write

# Every method of the registry on digits, against the floor it must reach (benchmarks/method_floors.yaml).
check-methods: $(VENV)/installed
	$(VENV)/bin/python benchmarks/check_methods.py --jobs $(CORES)

# Every method and every option on small problems, with this version and with that of commit BASE, which gets a worktree
# and an environment of its own: which final weights, logs and byte counts differ. CASES="fedavg feddf" runs only some;
# WITH="--set compute.stack=false" is for this version only, where a default has changed since.
same-bits: $(VENV)/installed
	@test -n "$(BASE)" || { echo "say which commit to compare with: make same-bits BASE=HEAD~1"; exit 2; }
	$(RUN) benchmarks.same_bits $(BASE) $(CASES) $(WITH)

# Runs that are not left in peace, and end with the bytes of one that was: 100 killed at random moments, on every engine of
# the environment that runs it; several hundred that die, or whose disk fails, at some operation on files; and runs of 2,000
# rounds in which nothing grows (docs/reliability.md). All go on after an interruption. OPTIONS="--seed 7" tries others.
kills: $(ENGINES)/installed
	$(ENGINES)/bin/python -m tests.reliability.kills $(OPTIONS)

crashes: $(VENV)/installed-dev
	$(RUN) tests.reliability.crashes $(OPTIONS)

# The same for fedfuse fuse: struck at random moments and at operations on files, in every stage and of every kind.
kills-of-fusions: $(VENV)/installed-dev
	$(RUN) tests.reliability.fusions $(OPTIONS)

soak: $(VENV)/installed-dev
	$(RUN) tests.reliability.soak $(OPTIONS)

# What is installed in both environments, as CycloneDX files in build/, and which of it has known vulnerabilities; its tools
# have an environment of their own. Error 1: some were found; Error 3: the vulnerability service could not be asked.
audit: $(VENV)/installed $(ENGINES)/installed $(AUDIT)/installed
	@$(PYTHON) deploy/audit.py $(AUDIT) build $(VENV) $(ENGINES)

clean:
	rm -rf $(VENV) $(ENGINES) $(TRACKERS) $(AUDIT) .same-bits .bench .reliability .attacks build dist papers/build src/*.egg-info papers/src/*.egg-info .coverage* coverage.json

# A stamp counts only while the environment behind it works; one that was moved, half installed or half deleted is
# built anew, because pip believes its own records. The package itself is only looked for, not imported: a slip in its code
# is no reason to build anything.
CORE := torch numpy scipy sklearn pydantic yaml typer rich safetensors pyarrow PIL matplotlib
TOOLS := pytest xdist pytest_cov hypothesis ruff mypy importlinter datasets mkdocs material
WORKS = $(VENV)/bin/python -c 'import pathlib; from importlib import import_module, util; \
	assert pathlib.Path(util.find_spec("fedfuse").origin).is_relative_to(pathlib.Path.cwd()); list(map(import_module, "$(1)".split()))'
BROKEN := $(shell $(call WORKS,$(CORE)) >/dev/null 2>&1 || echo yes)
BROKEN_DEV := $(shell $(call WORKS,$(TOOLS)) >/dev/null 2>&1 || echo yes)

.PHONY: always
always:

# torch first and by itself, so that nothing else drags in another build of it.
$(VENV)/installed: pyproject.toml papers/pyproject.toml constraints.txt $(if $(BROKEN),always)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fedfuse needs Python 3.11 or newer; try make PYTHON=python3.11"; exit 2; }
	$(if $(BROKEN),rm -rf $(VENV) && $(PYTHON) -m venv $(VENV))
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e . -e papers
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed $(if $(BROKEN_DEV),always)
	$(PIP) install -c constraints.txt -e '.[dev]'
	@$(call WORKS,$(TOOLS)) 2>/dev/null || $(PIP) install --force-reinstall -c constraints.txt -e '.[dev]'
	@touch $@

$(ENGINES)/installed: pyproject.toml
	rm -rf $(ENGINES) && $(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints-engines.txt torch
	$(ENGINES)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints-engines.txt -e '.[dev,ray,flower]'
	@touch $@

$(TRACKERS)/installed: pyproject.toml constraints-trackers.txt
	rm -rf $(TRACKERS) && $(PYTHON) -m venv $(TRACKERS)
	$(TRACKERS)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt torch
	$(TRACKERS)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints-trackers.txt -e '.[tensorboard,mlflow,wandb,trackio]' pytest hypothesis
	@touch $@

$(AUDIT)/installed:
	rm -rf $(AUDIT) && $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip --quiet --disable-pip-version-check install "pip-audit>=2.10,<3" "cyclonedx-bom>=7,<8"
	@touch $@
