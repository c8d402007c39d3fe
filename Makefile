# `make demo` and `make test` need Python 3.11 or newer and nothing else; both build .venv. `make test-petsc` needs
# Python 3.12 or newer, and builds .venv-petsc; `make test-torch` builds .venv-torch.
PYTHON ?= python3
BIN := .venv/bin
SECONDS ?= 600
SEED ?= 1
# Processes that run tests. Each takes whole modules of tests, since what one module compiles others load; those that
# take long come early. Each has two threads, as races need, and those of other libraries one: where SuiteSparse has more
# threads than there are cores, they wait for each other several times as long as they compute. Tests start some 150
# processes that import the package, so Python keeps its bytecode, whatever else the environment asks for.
WORKERS ?= logical
PARALLEL := PYTHONDONTWRITEBYTECODE= MCPRECOND_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
SHARED := -n $(WORKERS) --dist loadscope --no-loadscope-reorder
# Tests whose CUDA kernels are emulated.
EMULATED_TESTS := $(addprefix tests/,coloring linalg multigrid ordering preconditioners storage test_door.py test_wide.py \
	backends/test_kernel_sets.py $(patsubst %,solvers/test_%.py,hard_systems many_columns norms nullspace pcg scale))
# Emulated blocks share memory, so only one thread may launch kernels. The other tests take minutes, and look at what is
# launched more than at what kernels do.
NOT_EMULATED := --ignore tests/preconditioners/test_threads.py \
	--deselect tests/coloring/test_identity.py::test_options_reach_the_kernels

# The first Python from 3.12 on that starts: PETSc's wheels are made for those.
PETSC_PYTHON ?= $(shell for python in python3.12 python3.13 python3.14 $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2> /dev/null && echo $$python && break; done)
PETSC := .venv-petsc/bin
# What a rank runs; the first one reports.
RANK := timeout 600 $(PETSC)/python -m pytest -p no:cacheprovider tests/petsc

# The PyTorch of the tests, as pip names it; on Linux that of PyPI brings CUDA along. The one for CPUs alone is smaller:
# TORCH='torch --index-url https://download.pytorch.org/whl/cpu'.
TORCH ?= torch==2.13.0
TORCH_BIN := .venv-torch/bin

.PHONY: demo lint coverage audit test test-nightly test-petsc petsc-python petsc-gpu test-torch test-gpu test-release test-emulated fuzz fuzz-gpu measure-cpu measure-gpu measure-papers readme docs clean

demo: .venv/package
	$(BIN)/mcprecond demo

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m report
	$(PARALLEL) $(BIN)/python -m pytest $(SHARED) -m "not gpu and not nightly" --nbmake notebooks tests mcprecond

# Tests that take long: benchmarks and studies as scripts, emulated kernels, caches on disk, wide offsets, memory.
test-nightly: .venv/dev
	$(BIN)/python -m report
	$(PARALLEL) $(BIN)/python -m pytest $(SHARED) -m "nightly and not gpu" tests

# PETSc's solvers over MPI. What the first run compiles, the ranks of the others load.
test-petsc: export MCPRECOND_NUM_THREADS := 1
test-petsc: .venv-petsc/ready
	$(PETSC)/mpiexec -n 1 $(RANK) -q
	$(PETSC)/mpiexec -n 1 $(RANK) -q : -n 1 $(RANK) -p no:terminal
	$(PETSC)/mpiexec -n 1 $(RANK) -q : -n 3 $(RANK) -p no:terminal

# Derivatives through solves by PyTorch and JAX, and the page that fits a coefficient.
test-torch: .venv-torch/ready
	MCPRECOND_NUM_THREADS=2 $(TORCH_BIN)/python -m pytest -q -p no:cacheprovider -m "not gpu" tests/interop/test_torch.py tests/interop/test_jax.py

# On a machine with a GPU, with the Python that has CuPy there: all tests with launches that block, then without.
test-gpu:
	$(PYTHON) tests/gpu_record.py tests/gpu-record.json

# The wheel and the sdist, in fresh environments of every Python that is found, with newest and oldest dependencies.
test-release:
	$(PYTHON) tools/try_release.py --output dist

# Kernels as C++ in place of the CPU's functions, with checks of indices; it needs g++.
test-emulated: .venv/dev
	MCPRECOND_DEBUG=1 PYTHONPATH=tests $(BIN)/python -m pytest -p emulated -m "not gpu" --hypothesis-profile gpu $(EMULATED_TESTS) $(NOT_EMULATED)

# Random cases against references, for ten minutes or so; SECONDS and SEED can be set.
fuzz: .venv/dev
	$(BIN)/python tests/fuzz --seconds $(SECONDS) --seed $(SEED) --output benchmarks/results/fuzz-cpu.json

fuzz-gpu:
	$(PYTHON) tests/fuzz --device gpu --seconds $(SECONDS) --seed $(SEED) --output benchmarks/results/fuzz-gpu.json

# All benchmarks and studies, in parts; what was cut off after SECONDS goes on with the next call.
measure-cpu: .venv/dev
	$(BIN)/python -m benchmarks.everything cpu --seconds $(SECONDS)

measure-gpu:
	$(PYTHON) -m benchmarks.everything gpu --seconds $(SECONDS)

# The papers' studies on the matrices of a folder, MATRICES=folder, with tables in folder/results; with DEVICE=--gpu on a GPU.
measure-papers: $(if $(DEVICE),,.venv/dev)
	@test -n "$(MATRICES)" || { echo "set MATRICES to a folder with .mtx, .mtx.gz or .tar.gz files"; exit 1; }
	$(if $(DEVICE),$(PYTHON),$(BIN)/python) -m benchmarks.papers $(DEVICE) --matrices $(MATRICES) --output $(MATRICES)/results --renew

# Which lines of the package the tests reach: as they run, and the CPU's functions as plain Python. There tests of
# threads, caches and bits fail, and that is no matter.
COVER := $(BIN)/python -m coverage run -m pytest -n $(WORKERS) --dist loadscope -q -m "not gpu"
coverage: .venv/dev
	$(BIN)/python -m coverage erase
	$(PARALLEL) $(COVER) tests mcprecond
	$(PARALLEL) PYTHONPATH=tests $(COVER) -p interpreted --most-seconds 3 tests || test $$? = 1
	$(BIN)/python -m coverage combine
	$(BIN)/python -m coverage report

# What users install: their licenses, and what is known of their weaknesses, for which pip-audit asks pypi.org. The
# package cuda-toolkit holds nothing but the names of NVIDIA's libraries, and names no license.
USERS := .venv-users/bin/python
LICENSES := 0BSD;Apache;BSD;CC0;Historical Permission Notice;HPND;ISC;MIT;NVIDIA;PSF;Python Software Foundation;Zlib
audit: .venv-users/ready .venv-audit/ready
	.venv-audit/bin/pip-licenses --python $(USERS) --partial-match --ignore-packages cuda-toolkit --allow-only "$(LICENSES)"
	$(USERS) -m pip freeze --exclude mcprecond > .venv-users/pins.txt
	.venv-audit/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement .venv-users/pins.txt \
	|| { echo "audit: a dependency has a weakness, or pypi.org could not be asked; see above"; exit 1; }

readme: .venv/dev
	$(BIN)/python -m report readme
	$(BIN)/python docs/pictures.py

docs: .venv/docs
	$(BIN)/python -m report
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build
	@echo docs/_build/index.html

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "mcprecond needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

.venv/package: .venv/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli]'
	touch $@

.venv/dev: .venv/package
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# PETSc and petsc4py with CUDA, which wheels do not have, in .venv-petsc-gpu; see docs/how-to/petsc.md.
petsc-gpu:
	PETSC_PYTHON=$(PETSC_PYTHON) tools/petsc_gpu.sh .venv-petsc-gpu

# Its name, or nothing where there is none.
petsc-python:
	@echo $(PETSC_PYTHON)

.venv-petsc/ready: pyproject.toml
	@test -n "$(PETSC_PYTHON)" || { echo "PETSc's wheels need Python 3.12 or newer; set PETSC_PYTHON=..."; exit 1; }
	$(PETSC_PYTHON) -m venv .venv-petsc
	$(PETSC)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[petsc]' 'pytest>=8,<10' 'hypothesis>=6.100,<7'
	touch $@

.venv-torch/ready: pyproject.toml
	$(PYTHON) -m venv .venv-torch
	$(TORCH_BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(TORCH)
	$(TORCH_BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[torch,jax]' 'pytest>=8,<10' 'hypothesis>=6.100,<7'
	touch $@

.venv-audit/ready:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7,<3' 'pip-licenses>=5,<6'
	touch $@

.venv-users/ready: pyproject.toml
	$(PYTHON) -m venv .venv-users
	$(USERS) -m pip install --quiet --disable-pip-version-check '.[cli,graphblas,pyamg,studies,gpu]'
	touch $@

.venv/docs: .venv/package
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs,studies]'
	touch $@

clean:
	rm -rf .venv .venv-audit .venv-petsc .venv-petsc-gpu .venv-torch .venv-users
