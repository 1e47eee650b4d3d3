#!/bin/sh
# Build GROMACS of Debian's sources for an instruction set of this machine, since Debian's own is built for SSE4.1:
#     gromacs_from_source.sh FOLDER [AVX2_256 | AVX_512 | ...]
# makes FOLDER/build/bin/gmx, for engine_step.py --gromacs. Wants deb-src lines in apt's sources, cmake, ninja, libfftw3-dev
# and an hour of two cores.
set -eu
folder=${1:?"name the folder to build in"}
simd=${2:-AVX2_256}
mkdir -p "$folder"
cd "$folder"
apt-get source gromacs
cmake -S gromacs-*/ -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGMX_SIMD="$simd" -DGMX_FFT_LIBRARY=fftw3 \
  -DGMX_GPU=OFF -DGMX_MPI=OFF -DGMX_BUILD_HELP=OFF -DBUILD_TESTING=OFF -DGMXAPI=OFF -DGMX_INSTALL_NBLIB_API=OFF \
  -DGMX_HWLOC=OFF
ninja -C build gmx
