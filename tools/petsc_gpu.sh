#!/usr/bin/env bash
# Build PETSc and petsc4py with CUDA, from PyPI's sources, into an environment with wheels of all the rest: MPICH, CuPy
# and NCCL. It takes a C++ compiler, nvcc of CUDA 13, and a BLAS such as Debian's libopenblas-dev. On two cores it takes
# half an hour.
#
#   tools/petsc_gpu.sh [folder]        # .venv-petsc-gpu by default
#
# PETSC_PYTHON is a Python 3.12 or newer, BLAS a library, CUDA_ARCH the architecture of the GPUs (90: H100 and H200).
# Libraries that the toolkit at CUDA_HOME lacks are taken from wheels.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:-.venv-petsc-gpu}"
folder=$(cd "${1:-.venv-petsc-gpu}" && pwd)
python=${PETSC_PYTHON:-python3.12}
version=3.26.1
jobs=${JOBS:-$(nproc)}
home=${CUDA_HOME:-$(cd "$(nvcc --dryrun -x cu -c /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')" && pwd)}
blas=${BLAS:-$(ldconfig -p | awk '/libopenblas\.so$|libopenblas\.so / { print $NF; exit }')}
test -x "$home/bin/nvcc" || { echo "there is no nvcc; set CUDA_HOME to a CUDA 13"; exit 1; }
test -e "$blas" || { echo "there is no BLAS; install libopenblas-dev, or set BLAS to a library"; exit 1; }

"$python" -m venv "$folder"
export PATH=$folder/bin:$PATH
pip="python -m pip --disable-pip-version-check --quiet"
$pip install --editable "$root" 'cupy-cuda13x>=14,<16' 'nvidia-nccl-cu13>=2.27,<3' 'mpi4py>=4,<5' 'mpich>=4,<6' \
    'pytest>=8,<10' 'cython>=3,<4' 'setuptools<81' wheel

# A toolkit of links: what is installed, and what it lacks.
toolkit=$folder/toolkit
mkdir -p "$toolkit/lib64/stubs" "$toolkit/include" # PETSc wants stubs to be there
$pip install 'nvidia-cublas<13.1' 'nvidia-cusparse<12.7' 'nvidia-cusolver<12.1' 'nvidia-curand<10.4.1' \
    'nvidia-cufft<12.1' 'nvidia-nvjitlink<13.1' 'nvidia-cuda-nvrtc<13.1'
wheels=$(python -c 'import nvidia, os; print(os.path.join(list(nvidia.__path__)[0], "cu13"))')
for part in bin nvvm; do ln -sfn "$home/$part" "$toolkit/$part"; done
ln -sfn "$home"/include/* "$toolkit/include/"
for header in "$wheels"/include/*; do
    test -e "$toolkit/include/$(basename "$header")" || ln -s "$header" "$toolkit/include/"
done
ln -sfn "$home"/lib64/lib* "$toolkit/lib64/"
for library in "$wheels"/lib/lib*.so.*; do
    name=$(basename "$library")
    for link in "$name" "${name%%.so.*}.so"; do
        test -e "$toolkit/lib64/$link" || ln -s "$library" "$toolkit/lib64/$link"
    done
done
if ! ldconfig -p | grep -q 'libcuda\.so '; then # a machine without a driver: nothing runs here, but it links
    echo | gcc -shared -x c -o "$toolkit/lib64/libcuda.so" -Wl,-soname,libcuda.so.1 -
fi

cd "$folder"
if ! test -d "petsc-$version"; then
    $pip download --no-deps --no-binary :all: --no-build-isolation "petsc==$version"
    tar xzf "petsc-$version.tar.gz"
fi
export PETSC_DIR=$folder/petsc-$version PETSC_ARCH=cuda CC=mpicc
cd "$PETSC_DIR"
python ./configure --with-fc=0 --with-sowing=0 --with-cc=mpicc --with-cxx=mpicxx --with-debugging=0 --with-x=0 \
    --with-cuda=1 --with-cuda-dir="$toolkit" --with-cudac="$toolkit/bin/nvcc" --with-cuda-arch="${CUDA_ARCH:-90}" \
    --with-blaslapack-lib="$blas" COPTFLAGS=-O2 CXXOPTFLAGS=-O2 CUDAOPTFLAGS=-O2 \
    CUDAFLAGS+="-I$toolkit/include/cccl" CXXPPFLAGS+="-I$toolkit/include/cccl" PETSC_ARCH="$PETSC_ARCH"
make PETSC_DIR="$PETSC_DIR" PETSC_ARCH="$PETSC_ARCH" -j"$jobs" all
$pip install --no-build-isolation --no-deps --no-binary :all: "petsc4py==$version"
python - << 'END'
from mpi4py import MPI  # before petsc4py, so that the library of MPI is found
import petsc4py

petsc4py.init(["check", "-use_gpu_aware_mpi", "0"])
from petsc4py import PETSc

print("PETSc", PETSc.Sys.getVersion(), "with CUDA:", PETSc.Sys.hasExternalPackage("cuda"))
END
