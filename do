#!/usr/bin/env bash
# Everything on a fresh machine (Debian, Ubuntu): ./do demo builds and runs the example, ./do test runs all tests,
# ./do docs makes the documentation.
set -euo pipefail
cd "$(dirname "$0")"

readonly VENV="$PWD/.venv"
readonly SYSTEM_PACKAGES=(gcc g++ gfortran libopenmpi-dev openmpi-bin libhdf5-dev cmake ninja-build pkg-config)
# Tests of Fortran by itself; the others go through the same code once more.
readonly KERNEL_TESTS=(tests/clash tests/dna tests/engine tests/fft tests/mesoscale tests/nucleosome tests/shards tests/solvate)
# What the demo leaves out: double precision, and instruction sets that this processor does not have.
readonly QUICK_BUILD=(--config-settings=cmake.define.CHROMAMD_DOUBLE=OFF
  --config-settings=cmake.define.CHROMAMD_INSTRUCTION_SETS=native)
readonly WHOLE_BUILD=(--config-settings=cmake.define.CHROMAMD_DOUBLE=ON
  "--config-settings=cmake.define.CHROMAMD_INSTRUCTION_SETS=baseline;avx2;avx512")
readonly SOURCES=(CMakeLists.txt pyproject.toml README.md chromabuild mesoscale fortran templates workflows tests/engine/fortran)

say() { printf '\n==> %s\n' "$*"; }
stop() { printf 'do: %s\n' "$*" >&2; exit 1; }

usage() {
  cat <<'TEXT'
Usage: ./do COMMAND

  demo    set up, then build and simulate the bundled yeast locus in demo/ (again: continues where it stopped)
  test    set up, then check style, compiler warnings, a debug build with bounds checks, and run all tests
  docs    set up, then build the documentation site in build/docs/html and check its links
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
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
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

make_environment() {
  local python wanted
  python="$(find_python)"
  wanted="$(sha256sum <requirements.lock) $("$python" --version)"
  [[ -f "$VENV/.complete" && "$(<"$VENV/.complete")" == "$wanted" ]] && return
  say "Making .venv with $("$python" --version)"
  "$python" -m venv --clear "$VENV"
  "$VENV/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
  printf '%s' "$wanted" >"$VENV/.complete"
}

source_checksum() {
  find "${SOURCES[@]}" -type f -not -name '*.pyc' -not -name '*.so' -not -path '*/_bin/*' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}

# install_package STAMP [pip options]: leaves out the work when neither sources nor options have changed.
install_package() {
  local stamp="$1" state
  shift
  state="$(source_checksum) $*"
  [[ -f "$stamp" && "$(<"$stamp")" == "$state" ]] && return
  say "Building chromabuild ${*:+($*)}"
  PATH="$VENV/bin:$PATH" "$VENV/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
    --upgrade --force-reinstall "$@" .
  printf '%s' "$state" >"$stamp"
}

setup() {
  install_system_packages
  make_environment
  install_package "$VENV/.chromabuild" "$@"
  export PATH="$VENV/bin:$PATH"
}

# The quick build, unless a build of these sources is there already, with whatever options.
setup_quick() {
  install_system_packages
  make_environment
  [[ -f "$VENV/.chromabuild" && "$(<"$VENV/.chromabuild")" == "$(source_checksum) "* ]] ||
    install_package "$VENV/.chromabuild" "${QUICK_BUILD[@]}"
  export PATH="$VENV/bin:$PATH"
}

demo() {
  setup_quick
  [[ -f demo/locus.yaml ]] || chromabuild init --example demo demo
  say "Running the demo"
  (cd demo && chromabuild all)
}

run_tests() {
  local strict=("${WHOLE_BUILD[@]}" --config-settings=cmake.define.CHROMABUILD_WERROR=ON
    --config-settings=cmake.define.CHROMAMD_BUILD_TESTS=ON)
  setup "${strict[@]}"
  # A test draws the report in a browser; Ubuntu's package of that name is no browser, and the test is skipped there.
  [[ "$(. /etc/os-release && echo "$ID")" != debian ]] || install_system_packages chromium
  say "Checking style"
  ruff check .
  say "Unit tests of kernels and engine on a debug build with bounds checks"
  install_package build/debug.stamp "${strict[@]}" --config-settings=cmake.build-type=Debug \
    --config-settings=build-dir=build/debug --target "$PWD/build/debug-site"
  PYTHONPATH="$PWD/build/debug-site" pytest -q -n "$(nproc)" --dist loadfile --no-loadscope-reorder -m "not slow" \
    "${KERNEL_TESTS[@]}"
  say "All tests"
  pytest -q -n "$(nproc)" --dist loadfile --no-loadscope-reorder
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
  sphinx-build -q -W --keep-going -d build/docs/doctrees docs "$site"
  ford --quiet docs/ford.md
  python docs/generate/links.py "$site"
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
