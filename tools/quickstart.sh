#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
#
# On a fresh machine: installs what is missing, builds, trains PW-DICE and behaviour cloning on the embedded maze,
# compares them and leaves a policy that a robot could load.
#
#   tools/quickstart.sh [--seeds N] [--out DIR]        passed on to `pwdice quickstart`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\nquickstart: %s\n' "$*"; }

say "will install what is missing (tools/setup.sh), build build/cpu/bin/pwdice and train on the embedded maze"
mkdir -p build
tools/setup.sh
[ ! -f build/deps/env.sh ] || . build/deps/env.sh

say "building"
cmake --preset cpu >build/cpu.configure.log || { cat build/cpu.configure.log; exit 1; }
cmake --build --preset cpu --target pwdice >build/cpu.build.log 2>&1 || { tail -n 60 build/cpu.build.log; exit 1; }

say "training"
exec build/cpu/bin/pwdice quickstart "$@"
