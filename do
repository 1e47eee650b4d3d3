#!/usr/bin/env bash
# Everything on a fresh machine (Debian, Ubuntu): ./do demo builds and runs the example, ./do test runs all tests,
# ./do docs makes the documentation.
set -euo pipefail
cd "$(dirname "$0")"

# Some tests wait for other processes: one more than there are cores.
WORKERS="$(($(nproc) + 1))"
# A process that crashes or hangs ends the run: its tests would be given to another one, which crashes too.
readonly PARALLEL=(-n "$WORKERS" --max-worker-restart 0)
readonly VENV="$PWD/.venv"
readonly SYSTEM_PACKAGES=(gcc g++ gfortran libopenmpi-dev openmpi-bin libhdf5-dev cmake ninja-build pkg-config)
# Tests of Fortran by itself; the others go through the same code once more.
readonly KERNEL_TESTS=(tests/{clash,dna,engine,fft,mesoscale,nucleosome,shards,solvate})
# Documentation that is executed.
readonly LESSONS=(tests/docs/test_tutorials.py tests/docs/test_examples.py)
readonly SOURCES=(CMakeLists.txt pyproject.toml README.md chromabuild mesoscale fortran templates workflows
  tests/engine/fortran)
# Kernels are compiled for this processor (of the debug build for the baseline); double precision is for tests and for those
# who ask.
readonly QUICK_BUILD=(--config-settings=cmake.define.CHROMAMD_INSTRUCTION_SETS=native
  --config-settings=cmake.define.CHROMAMD_DOUBLE=OFF)
readonly WHOLE_BUILD=(--config-settings=cmake.define.CHROMAMD_INSTRUCTION_SETS=native
  --config-settings=cmake.define.CHROMAMD_DOUBLE=ON)
# Tests start hundreds of processes, and each would compile its modules again.
unset PYTHONDONTWRITEBYTECODE
any_build=no   # yes: a build of these sources with other options will do

say() { printf '\n==> %s\n' "$*"; }
stop() { printf 'do: %s\n' "$*" >&2; exit 1; }

usage() {
  cat <<'TEXT'
Usage: ./do COMMAND

  demo    set up, then build and simulate the bundled yeast locus in demo/ (again: continues where it stopped)
  test    set up, then check style, compiler warnings, a debug build with bounds checks, and run all other tests
  docs    set up, then build the documentation site in build/docs/html, check its links, and run its tutorials and
          the examples
  setup   system packages (apt; sudo when not root), .venv from requirements.lock, chromabuild itself
TEXT
}

# install_system_packages [MORE]: what is missing of the packages, through apt.
install_system_packages() {
  local packages=("${SYSTEM_PACKAGES[@]}" "$@") missing=() package
  command -v dpkg-query >/dev/null ||
    stop "this is not a Debian or Ubuntu system: install gfortran, an MPI, HDF5, cmake and ninja, then pip install ."
  find_python >/dev/null 2>&1 || packages+=(python3 python3-venv)
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "Installing ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || stop "ask an administrator to run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The first Python of version 3.11 or later that can make virtual environments.
find_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  stop "Python 3.11 or later with venv is needed: install python3.11 and python3.11-venv, or put a newer python3 on PATH"
}

# locked NAME...: the lines of requirements.lock for these packages.
locked() {
  awk -v names=" $* " '/^[a-z]/ { split($1, part, "=="); wanted = index(names, " " part[1] " ") } wanted' requirements.lock
}

# environment FOLDER REQUIREMENTS: a virtual environment with these packages, unless it is there.
environment() {
  local folder="$1" requirements="$2" python wanted
  python="$(find_python)"
  wanted="$(sha256sum <<<"$requirements") $("$python" --version)"
  [[ -f "$folder/.complete" && "$(<"$folder/.complete")" == "$wanted" ]] && return
  say "Making ${folder#"$PWD"/} with $("$python" --version)"
  "$python" -m venv --clear "$folder"
  # Modules that are imported get their bytecode then.
  "$folder/bin/pip" install --quiet --disable-pip-version-check --no-compile --require-hashes \
    -r /dev/stdin <<<"$requirements"
  printf '%s' "$wanted" >"$folder/.complete"
}

source_checksum() {
  find "${SOURCES[@]}" -type f -not -name '*.pyc' -not -name '*.so' -not -path '*/_bin/*' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}

# build_wheel FOLDER [pip options]: chromabuild's wheel in FOLDER, made in an environment with what compiling needs. Nothing
# is done when neither sources nor options have changed.
build_wheel() {
  local folder="$1" sources state built=""
  shift
  sources="$(source_checksum)"
  state="$sources $*"
  [[ ! -f "$folder/.state" ]] || built="$(<"$folder/.state")"
  [[ "$built" != "$state" && ! ($any_build == yes && "$built" == "$sources "*) ]] || return 0
  environment "$PWD/build/environment" "$(locked numpy packaging pathspec scikit-build-core)"
  say "Building chromabuild ${*:+($*)}"
  rm -rf "$folder"
  PATH="$PWD/build/environment/bin:$PATH" "$PWD/build/environment/bin/pip" wheel --quiet --disable-pip-version-check \
    --no-build-isolation --no-deps --wheel-dir "$folder" "$@" .
  printf '%s' "$state" >"$folder/.state"
}

# install_wheel FOLDER STAMP [pip options]: unless STAMP says that it is installed.
install_wheel() {
  local folder="$1" stamp="$2"
  shift 2
  [[ -f "$stamp" && "$(<"$stamp")" == "$(<"$folder/.state")" ]] && return
  "$VENV/bin/pip" install --quiet --disable-pip-version-check --no-deps --upgrade --force-reinstall "$@" "$folder"/*.whl
  cp "$folder/.state" "$stamp"
}

# setup [pip options]: everything ready to use; Python's packages are fetched while the system's are installed and
# chromabuild is compiled.
setup() {
  find_python >/dev/null 2>&1 || install_system_packages
  environment "$VENV" "$(<requirements.lock)" &
  local packages=$!
  # The number now: the variable is gone when a later command ends the script.
  trap "kill $packages 2>/dev/null || true" EXIT
  install_system_packages
  build_wheel "$PWD/build/wheel" "$@"
  wait "$packages"
  trap - EXIT
  install_wheel "$PWD/build/wheel" "$VENV/.chromabuild"
  export PATH="$VENV/bin:$PATH"
}

# The quick build, unless a build of these sources is there already, with whatever options.
setup_quick() {
  any_build=yes
  setup "${QUICK_BUILD[@]}"
}

demo() {
  setup_quick
  [[ -f demo/locus.yaml ]] || chromabuild init --example demo demo
  say "Running the demo"
  (cd demo && chromabuild all --until run && chromabuild analyse --measure dna,nucleosome,fibre,solvent && chromabuild all)
}

run_tests() {
  local strict=("${WHOLE_BUILD[@]}" --config-settings=cmake.define.CHROMABUILD_WERROR=ON
    --config-settings=cmake.define.CHROMAMD_BUILD_TESTS=ON)
  setup "${strict[@]}"
  # A test draws the report in a browser; Ubuntu's package of that name is no browser, and the test is skipped there.
  # GROMACS judges the export to it, LAMMPS that to LAMMPS, sander that to AMBER. pocl runs OpenMM's code of GPUs on processors. libcifpp-data
  # holds the PDBx dictionary, which judges structure files.
  if [[ "$(. /etc/os-release && echo "$ID")" == debian ]]; then
    install_system_packages chromium gromacs libcifpp-data pocl-opencl-icd
  else
    install_system_packages gromacs libcifpp-data pocl-opencl-icd
  fi
  environment "$PWD/build/judges" "$(<requirements-judges.lock)"
  export JUDGES="$PWD/build/judges/bin"
  say "Checking style"
  ruff check .
  say "Unit tests of kernels and engine on a debug build with bounds checks"
  # In double precision alone: the two programs differ in the kinds of reals and in how coordinates are packed.
  build_wheel "$PWD/build/debug-wheel" "${strict[@]}" --config-settings=cmake.build-type=Debug \
    --config-settings=cmake.define.CHROMAMD_MIXED=OFF --config-settings=build-dir=build/debug
  install_wheel "$PWD/build/debug-wheel" build/debug.stamp --target "$PWD/build/debug-site"
  PYTHONPATH="$PWD/build/debug-site" pytest -q "${PARALLEL[@]}" --dist loadfile --no-loadscope-reorder \
    --durations=15 -m "not slow and not release" "${KERNEL_TESTS[@]}"
  say "All tests but those of the documentation"
  pytest -q "${PARALLEL[@]}" --dist loadfile --no-loadscope-reorder --durations=30 "${LESSONS[@]/#/--ignore=}"
}

# make_docs: the site, its Fortran pages beside it; a warning of Sphinx or a link that leads nowhere is an error.
make_docs() {
  setup_quick
  local site="$PWD/build/docs/html" wanted
  wanted="$(sha256sum <requirements-docs.lock) $(<"$VENV/.complete")"
  if [[ ! -f "$VENV/.docs" || "$(<"$VENV/.docs")" != "$wanted" ]]; then
    say "Installing Sphinx and FORD"
    pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
    printf '%s' "$wanted" >"$VENV/.docs"
  fi
  say "Building the documentation"
  sphinx-build -q -W --keep-going -j "$(nproc)" -d build/docs/doctrees docs "$site"
  ford --quiet docs/ford.md
  python docs/generate/links.py "$site"
  say "Running the tutorials and the examples"
  pytest -q "${PARALLEL[@]}" "${LESSONS[@]}"
  say "Open $site/index.html"
}

case "${1:-}" in
  demo) demo ;;
  docs) make_docs ;;
  test) run_tests ;;
  setup) setup "${WHOLE_BUILD[@]}" ;;
  -h | --help | help) usage ;;
  *) usage >&2; exit 2 ;;
esac
