#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
#
# Builds and passes the tests on a fresh machine.
#
#   tools/test.sh                        the parts cpu, cuda and fuzz
#   tools/test.sh cpu asan tsan cuda     these parts
#
# cpu   g++, all tests of the CPU backend, MuJoCo parity, the installed package
# cuda  nvcc for every supported architecture; the PTX of every kernel executed on the CPU (skipped, and counted
#       as skipped, where there is no nvcc)
# asan  AddressSanitizer and UndefinedBehaviorSanitizer        tsan  ThreadSanitizer, the ops and the runtime
# fuzz  clang reads every source, with warnings as errors; libFuzzer on every reader of files
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(cpu cuda fuzz)
for part in "${parts[@]}"; do
  case $part in cpu | cuda | asan | tsan | fuzz) ;; *) echo "test: unknown part '$part'; there are: cpu cuda asan tsan fuzz" >&2; exit 2 ;; esac
done
# Where CMake looks for it too.
find_nvcc() {
  local place
  for place in "${CUDACXX:-}" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "${CUDA_PATH:+$CUDA_PATH/bin/nvcc}" "$(command -v nvcc || true)" \
    /usr/local/cuda/bin/nvcc; do
    [ -n "$place" ] && [ -x "$place" ] && { echo "$place"; return; }
  done
  return 0
}
nvcc=$(find_nvcc)
limit=720  # seconds of the part cuda on 2 idle cores
passed=0 failed=0 skipped=0 summary=()

say() { printf '\ntest: %s\n' "$*"; }

# run_preset <preset> <target> <tests> <cmake options>: configures, builds, runs the tests whose names match and counts
# what ctest counted. The presets share sources, so ccache spares most of the second build.
run_preset() {
  local preset=$1 target=$2 tests=$3 log=build/$1/ctest.log start=$SECONDS
  shift 3
  say "building build/$preset"
  cmake --preset "$preset" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@" >"build/$preset.configure.log" || { cat "build/$preset.configure.log"; return 1; }
  cmake --build --preset "$preset" --target $target >"build/$preset.build.log" 2>&1 || { tail -n 60 "build/$preset.build.log"; return 1; }
  say "running the tests of build/$preset"
  ctest --test-dir "build/$preset" -R "$tests" -j "$(nproc)" --output-on-failure --timeout 600 2>&1 | tee "$log" | grep -vE '^ *Start |Passed +[0-9.]+ sec$' || true
  local total bad
  total=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' "$log") bad=$(sed -n 's/.*, \([0-9]*\) tests failed out of.*/\1/p' "$log")
  [ -n "$total" ] || { echo "test: ctest ran nothing in build/$preset" >&2; return 1; }
  passed=$((passed + total - bad)) failed=$((failed + bad))
  summary+=("$(printf '%-5s %5d passed %3d failed  %4d s' "$preset" $((total - bad)) "$bad" $((SECONDS - start)))")
}

run_part() {
  case $1 in
    cpu) run_preset cpu all . -DPWDICE_WERROR=ON ;;
    asan | tsan) run_preset "$1" all . ;;
    fuzz) run_preset fuzz "pwdice pwdice_fuzzers" '^(fuzz|clang)' -DPWDICE_WERROR=ON ;;
    cuda)
      if [ -z "$nvcc" ]; then
        say "cuda: skipped, there is no nvcc"
        skipped=$((skipped + 1)) summary+=("cuda  skipped: no nvcc")
      else
        local start=$SECONDS
        run_preset cuda pwdice_cuda_checks '^(cuda|ptxcpu|gpu)' -DPWDICE_WERROR=ON -DPWDICE_PTXCPU=ON \
          -DPWDICE_CUDA_ARCHITECTURES="75;80;86;87;89;90;100;120" || return 1
        grep -q '#.*: cuda\.' build/cuda/ctest.log || { echo "test: nvcc is $nvcc, but no test of the CUDA backend ran" >&2; return 1; }
        [ $((SECONDS - start)) -le $limit ] || say "warning: the part cuda took $((SECONDS - start)) s, more than $limit"
      fi ;;
  esac
}

say "will install what is missing (tools/setup.sh), then build and test: ${parts[*]}"
mkdir -p build
setup=(--tests)
[ "${parts[*]}" = cuda ] || setup+=(--mujoco)
case " ${parts[*]} " in *" cuda "*) [ -z "$nvcc" ] || setup+=(--cuda) ;; esac
tools/setup.sh "${setup[@]}"
[ ! -f build/deps/env.sh ] || . build/deps/env.sh
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1  # a clone elsewhere finds the same objects

for part in "${parts[@]}"; do
  run_part "$part" || { failed=$((failed + 1)) summary+=("$part  did not build or run"); }
done

say "summary"
printf '  %s\n' "${summary[@]}"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
