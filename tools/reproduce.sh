#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
#
# The paper's comparison, from nothing to a report: installs, builds, trains every method on every task and seed, and
# writes report.md and report.html. Interrupted, it goes on where it was: the same command again.
#
#   tools/reproduce.sh mujoco --data DIR [--out DIR] [--env hopper,halfcheetah,walker2d] [--seeds 0,1,2] [--steps N]
#                             [--methods pwdice,bc,..] [--jobs 2] [--set key=value].. [--report-only]
#   tools/reproduce.sh mujoco --help
#
# PWDICE_PROGRAM=/path/to/pwdice uses that program instead of building build/cpu/bin/pwdice.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

[ "${1:-}" = mujoco ] || { echo "reproduce: usage: tools/reproduce.sh mujoco [options]; --help lists them" >&2; exit 2; }
shift
for option in "$@"; do
  case $option in -h | --help) exec python3 "$root/tools/reproduce_runs.py" --help ;; esac
done

say() { printf 'reproduce: %s\n' "$*"; }

build() (
  cd "$root"
  mkdir -p build
  tools/setup.sh --mujoco
  [ ! -f build/deps/env.sh ] || . build/deps/env.sh
  cmake --preset cpu >build/cpu.configure.log || { cat build/cpu.configure.log; exit 1; }
  cmake --build --preset cpu --target pwdice >build/cpu.build.log 2>&1 || { tail -n 60 build/cpu.build.log; exit 1; }
)

if [ -z "${PWDICE_PROGRAM:-}" ]; then
  say "will install what is missing (tools/setup.sh --mujoco) and build build/cpu/bin/pwdice"
  build
  PWDICE_PROGRAM=$(realpath --relative-to="$PWD" "$root/build/cpu/bin/pwdice")
fi
exec python3 "$root/tools/reproduce_runs.py" --program "$PWDICE_PROGRAM" "$@"
