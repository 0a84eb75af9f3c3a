# Everything runs in .venv, which these commands make themselves: Python ≥ 3.11, pip and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Where `make install` puts the command: ~/.local if its bin is on the PATH or nothing else is ours to write.
PREFIX ?= $(shell if echo ":$$PATH:" | grep -q ":$$HOME/.local/bin:" || ! test -w /usr/local/bin; \
            then echo "$$HOME/.local"; else echo /usr/local; fi)

# One more than cores: a third of the time of the system tests is waiting for processes that hang, on purpose.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

.PHONY: help demo test compose-test audit bench pictures figures profile native oracles lint proto install clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

# Installed again when the project's metadata changes; the code itself is used in place.
$(VENV)/.demo: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

demo: $(VENV)/.demo  ## a private Kendall tau between real processes on this machine
	$(BIN)/umpc demo

test: $(VENV)/.dev  ## all tests, on all cores
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

compose-test: $(VENV)/.dev  ## docker-compose.yml in containers, where a docker engine is at hand
	$(BIN)/python -m pytest --timeout 0 -rA tests/compose

audit: $(VENV)/.dev  ## what many whole runs prove about ε: UMPC_AUDIT_RUNS (8) times as many as `make test` takes
	UMPC_AUDIT_RUNS=$${UMPC_AUDIT_RUNS:-8} $(BIN)/python -m pytest -n auto --dist worksteal --timeout 0 -rP tests/audit

bench: $(VENV)/.dev  ## every figure beside its target; compiles the sign gate first if there is a compiler
	@if command -v cc > /dev/null; then $(MAKE) --no-print-directory native; fi
	$(BIN)/python -m bench

pictures: $(VENV)/.bench  ## what jobs take as they grow, into bench/pictures
	$(BIN)/python -m bench.scaling

figures: $(VENV)/.bench  ## the papers' figures and tables, measured here, into bench/pictures/papers; goes on where it was
	$(BIN)/python -m bench.figures

profile: $(VENV)/.demo  ## where the time of a complete job goes, by process and kind of work
	$(BIN)/python -m bench.profile

# Needs a C compiler, which nothing else here does.
native: $(VENV)/.demo  ## optional: the sign gate compiled for this processor, used from then on (UMPC_NATIVE=0: not)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps ./native

oracles: $(VENV)/.dev  ## our accounting beside another library's, which this installs in an environment of its own
	test -x $(VENV)-oracles/bin/python || $(PYTHON) -m venv $(VENV)-oracles
	$(VENV)-oracles/bin/python -m pip install --quiet --disable-pip-version-check --editable . pytest dp-accounting
	$(VENV)-oracles/bin/python -m pytest tests/dp/google_oracle.py

lint: $(VENV)/.dev  ## style
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

proto: $(VENV)/.dev  ## Python from umpc/proto/v1/umpc.proto
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. --grpc_python_out=. umpc/proto/v1/umpc.proto

install: $(VENV)/.demo  ## the command `umpc` into PREFIX/bin (default ~/.local, or /usr/local)
	@mkdir -p "$(PREFIX)/bin" && ln -sf "$$PWD/$(BIN)/umpc" "$(PREFIX)/bin/umpc"
	@echo "umpc is $(PREFIX)/bin/umpc, a link into this folder; it needs $(PREFIX)/bin on your PATH"

clean:  ## remove what these commands made
	rm -rf $(VENV) $(VENV)-oracles build dist *.egg-info native/build native/*.egg-info
