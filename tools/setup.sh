#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
#
# Installs what building and testing need, on Debian 12 or Ubuntu 22.04 and later; quickstart.sh and test.sh call it.
# Safe to run twice: what is there already is left alone.
#
#   tools/setup.sh            compiler, CMake and the libraries, from the distribution; what is too old there
#                             (Ubuntu 22.04) comes from PyPI into build/deps, where `. build/deps/env.sh` finds it
#   tools/setup.sh --tests    also clang, and build/venv with the Python packages of tools/requirements.txt
#   tools/setup.sh --mujoco   also build/venv with MuJoCo and gymnasium (tools/requirements-mujoco.txt)
#   tools/setup.sh --cuda     also clang, and build/venv with CUTLASS (tools/requirements-cuda.txt); the CUDA
#                             toolkit itself is the user's
#   tools/setup.sh --peers    also build/peers with PyTorch and JAX (tools/requirements-peers.txt), for bench/peers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

want_peers=false want_deps=false requirements=()
packages=(build-essential ninja-build pkg-config libhdf5-dev libdeflate-dev libcli11-dev nlohmann-json3-dev
          libeigen3-dev libgtest-dev libbenchmark-dev python3)
declare -A recent=([cmake]=3.25 [libhwy-dev]=1.0 [libtomlplusplus-dev]=3.0)  # with the versions needed; see install_deps
for option in "$@"; do
  case $option in
    --tests) packages+=(ccache clang python3-venv git)
             recent[libclang-rt-dev]=1  # libFuzzer, clang's sanitizers; an older clang has them with it
             requirements+=(tools/requirements.txt) ;;
    --mujoco) packages+=(python3-venv libegl1 libgl1-mesa-dri)  # the last two draw for `pwdice eval --record`
              requirements+=(tools/requirements-mujoco.txt) ;;
    --cuda) packages+=(clang python3-venv)
            requirements+=(tools/requirements-cuda.txt) ;;
    --peers) packages+=(python3-venv libdnnl-dev)  # the second: pwdice_bench's baseline/dnnl_sgemm
             want_peers=true ;;
    *) echo "setup: unknown option $option; there are: --tests --mujoco --cuda --peers" >&2; exit 2 ;;
  esac
done

say() { printf 'setup: %s\n' "$*"; }
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }
candidate() { LC_ALL=C apt-cache policy "$1" | sed -n 's/^  Candidate: \([0-9].*\)/\1/p'; }  # empty: apt knows of none
lacks_recent() {
  local package
  for package in "${!recent[@]}"; do
    dpkg --compare-versions "$(candidate "$package")" ge "${recent[$package]}" || return 0
  done
  return 1
}

install_packages() {
  [ -f build/deps/env.sh ] || packages+=("${!recent[@]}")
  command -v dpkg-query >/dev/null || {
    say "this is not Debian or Ubuntu; install the equivalents of: ${packages[*]}"; return 1; }
  local missing=() package
  for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -eq 0 ] && { say "all ${#packages[@]} distribution packages are installed"; return; }
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "missing packages, and neither root nor sudo to install them: ${missing[*]}"; return 1; }
    root=(sudo)
  fi
  "${root[@]}" apt-get update -qq
  [ -n "$(candidate cmake)" ] || { say "apt has no package lists: is there a network?"; return 1; }
  if [ ! -f build/deps/env.sh ] && lacks_recent; then
    want_deps=true missing=()
    for package in "${packages[@]}" python3-venv; do
      [ -n "${recent[$package]:-}" ] || installed "$package" || missing+=("$package")
    done
  fi
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing from the distribution: ${missing[*]}"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
    say "apt-get could not install: ${missing[*]}"; return 1; }
}

# CMake is a Python package; Highway and toml++ come out of the sources of two Python packages that carry them.
install_deps() {
  local deps=$PWD/build/deps index source
  say "installing into build/deps, from PyPI: CMake, Highway and toml++, which are missing or too old in the distribution"
  rm -rf "$deps" && mkdir -p "$deps/bin" "$deps/include" && python3 -m venv "$deps/venv"
  "$deps/venv/bin/pip" install --quiet --disable-pip-version-check -r tools/requirements-deps.txt || {
    say "pip could not install the packages of tools/requirements-deps.txt"; return 1; }
  ln -s "$deps"/venv/bin/{cmake,ctest} "$deps/bin"
  index=$("$deps/venv/bin/pip" config get global.index-url 2>/dev/null || true)
  for source in numpy==2.0.2 pytomlpp==1.1.0; do
    "$deps/venv/bin/unearth" ${index:+--index-url "$index"} --no-binary "$source" --download "$deps" >/dev/null || {
      say "could not download the sources of $source"; return 1; }
    tar -xzf "$deps/${source/==/-}.tar.gz" -C "$deps"
  done
  cp -r "$deps/pytomlpp-1.1.0/third_party/tomlplusplus/include/toml++" "$deps/include"
  { "$deps/bin/cmake" -S "$deps/numpy-2.0.2/numpy/_core/src/highway" -B "$deps/highway" -G Ninja \
      -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DHWY_ENABLE_TESTS=OFF \
      -DHWY_ENABLE_CONTRIB=OFF -DHWY_ENABLE_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX="$deps" -DCMAKE_INSTALL_LIBDIR=lib &&
      "$deps/bin/cmake" --build "$deps/highway" --target install; } >"$deps/highway.log" 2>&1 || {
    say "could not build Highway; build/deps/highway.log says why"; return 1; }
  rm -r "$deps"/{numpy-2.0.2,pytomlpp-1.1.0,highway} "$deps"/*.tar.gz
  cat >"$deps/env.sh" <<EOF
# Where tools/setup.sh put what is too old in the distribution.
export PATH="$deps/bin:\$PATH" CPLUS_INCLUDE_PATH="$deps/include\${CPLUS_INCLUDE_PATH:+:\$CPLUS_INCLUDE_PATH}"
export PKG_CONFIG_PATH="$deps/lib/pkgconfig\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH}"
EOF
}

# install_python <environment> <files of requirements>. Python packages live in build/venv and build/peers and nowhere
# else; the stamp makes a second run a no-op.
install_python() {
  local venv=$1 wanted
  local stamp=$venv/.installed
  shift
  wanted=$(cat "$@" | sha256sum | cut -d' ' -f1)
  [ -d "$venv" ] || { say "creating $venv"; python3 -m venv "$venv"; }
  if ! grep -qs "$wanted" "$stamp"; then
    say "installing into $venv: $(cat "$@" | grep -v '^#' | tr '\n' ' ')"
    local arguments=() file
    for file in "$@"; do arguments+=(-r "$file"); done
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${arguments[@]}" || {
      say "pip could not install the packages of: $*"; return 1; }
    echo "$wanted" >> "$stamp"
  else
    say "$venv is up to date"
  fi
}

install_packages
! $want_deps || install_deps
[ ${#requirements[@]} -eq 0 ] || install_python build/venv "${requirements[@]}"
! $want_peers || install_python build/peers tools/requirements-peers.txt
