#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
#
# Installs what building and testing need, on Debian 12 or Ubuntu 24.04 and later; quickstart.sh and test.sh call it.
# Safe to run twice: what is there already is left alone.
#
#   tools/setup.sh            compiler, CMake and the libraries, from the distribution
#   tools/setup.sh --tests    also clang, and build/venv with the Python packages of tools/requirements.txt
#   tools/setup.sh --mujoco   also build/venv with MuJoCo and gymnasium (tools/requirements-mujoco.txt)
#   tools/setup.sh --cuda     also clang, and build/venv with CUTLASS (tools/requirements-cuda.txt); the CUDA
#                             toolkit itself is the user's
#   tools/setup.sh --peers    also build/peers with PyTorch and JAX (tools/requirements-peers.txt), for bench/peers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

want_peers=false requirements=()
packages=(build-essential cmake ninja-build pkg-config libhwy-dev libhdf5-dev libdeflate-dev libcli11-dev
          libtomlplusplus-dev nlohmann-json3-dev libeigen3-dev libgtest-dev libbenchmark-dev python3)
for option in "$@"; do
  case $option in
    --tests) packages+=(ccache clang libclang-rt-dev python3-venv git)  # the second: libFuzzer, clang's sanitizers
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

install_packages() {
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
  # Ubuntu 22.04 has neither: better said now than by the compiler.
  [ -n "$(candidate libtomlplusplus-dev)" ] && dpkg --compare-versions "$(candidate libhwy-dev)" ge 1.0 || {
    say "apt knows no libtomlplusplus-dev, or no libhwy-dev of version 1.0 or later: Debian 12 or Ubuntu 24.04 is needed"; return 1; }
  say "installing from the distribution: ${missing[*]}"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
    say "apt-get could not install: ${missing[*]}"; return 1; }
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
[ ${#requirements[@]} -eq 0 ] || install_python build/venv "${requirements[@]}"
! $want_peers || install_python build/peers tools/requirements-peers.txt
