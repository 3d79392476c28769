#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
#
# For someone who has a GPU: builds for it, runs every test on it, under compute-sanitizer as well, times the fused
# ops beside cuBLAS, and writes one Markdown report to send back.
#
#   tools/gpu_check.sh [report.md]                    default: build/gpu_report.md
#   tools/gpu_check.sh --emulated BUILD [report.md]   the same steps with the programs of BUILD, whose GPU is pretended
#                                                     (tools/ptxcpu); its checks stand in for compute-sanitizer
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

emulated=""
if [ "${1:-}" = --emulated ]; then emulated=$2; shift 2; fi
mkdir -p build
report=$(realpath -m "${1:-build/gpu_report.md}")
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0

say() { printf 'gpu_check: %s\n' "$*"; }
note() { printf '%s\n' "$*" >>"$report"; }

# step <name> <command...>: runs it and adds one row to the report, and the end of its output if it failed. Within the
# command set -e does not hold.
step() {
  local name=$1 start=$SECONDS log status=passed
  shift
  log=$logs/${name//[^a-z0-9]/_}.log
  say "$name"
  "$@" >"$log" 2>&1 || { status=FAILED; failed=$((failed + 1)); }
  note "| $name | $status | $((SECONDS - start)) s |"
  [ $status = passed ] || { tail -n 20 "$log"; details+=("$log"); }
}

find_gpu() {
  gpu=$(nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -1) || true
  [ -n "$gpu" ] || {
    say "no NVIDIA GPU answers to nvidia-smi; without one, tools/test.sh cuda executes the kernels on the CPU" >&2
    exit 1
  }
  # The newest that the build has machine code for; a newer device compiles the PTX of it.
  local capability supported
  capability=$(cut -d, -f2 <<<"$gpu" | tr -d ' .') architecture=""
  for supported in 75 80 86 87 89 90 100 120; do [ "$supported" -gt "$capability" ] || architecture=$supported; done
  [ -n "$architecture" ] || { say "$gpu: compute capability 7.5 is needed" >&2; exit 1; }
}

build() {
  tools/setup.sh --tests --cuda &&
    { [ ! -f build/deps/env.sh ] || . build/deps/env.sh; } &&
    cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DPWDICE_CUDA=ON -DPWDICE_PTXCPU=OFF -DPWDICE_GPU_TESTS=ON \
      -DPWDICE_CUDA_ARCHITECTURES="$architecture" &&
    cmake --build build/gpu
}

benchmark() { "${bench[@]}" | tee "$logs/bench.md"; }

check() {
  local program tool command
  for program in "${programs[@]}"; do step "tests: $(basename "$program")" "$program" --gtest_filter="$filter"; done
  for tool in memcheck racecheck initcheck synccheck; do
    command=("${sanitizer[@]}")
    [ -n "$emulated" ] || command+=("$tool")
    # Without the largest cases, which would take hours here.
    for program in "${programs[@]}"; do
      step "$tool: $(basename "$program")" "${command[@]}" "$program" --gtest_filter="$filter-*Large*"
    done
  done
  step benchmarks benchmark
}

if [ -n "$emulated" ]; then
  gpu="pretended by ptxcpu" programs=("$emulated/bin/pwdice_cuda_tests_80" "$emulated/bin/pwdice_cuda_own_tests")
  filter='AdamOp.*/Cuda:CuBlas*:LayerPrecision*' bench=("$emulated/bin/pwdice_gpu_bench_emulated" --small) sanitizer=(env)
  PWDICE_CUBLAS_LIBRARY=$(find "$emulated" -name libptxcpu_cublas.so | head -1)
  export PWDICE_CUBLAS_LIBRARY
else
  find_gpu
  export PATH="$PATH:/usr/local/cuda/bin"  # compute-sanitizer
  programs=(build/gpu/bin/pwdice_kernels_tests build/gpu/bin/pwdice_host_tests build/gpu/bin/pwdice_golden_tests
            build/gpu/bin/pwdice_device_tests)
  filter='*Cuda*:CuBlas*' bench=(build/gpu/bin/pwdice_gpu_bench) sanitizer=(compute-sanitizer --error-exitcode 1 --tool)
fi

details=()
printf '# pwdice on %s\n\n' "$gpu" >"$report"
note "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(uname -srm), $(date -u +%Y-%m-%dT%H:%MZ)"
note ""
note "| step | result | time |"
note "|---|---|---|"
[ -n "$emulated" ] || step "build for sm_$architecture" build
export PWDICE_REQUIRE_GPU=1
if [ "$failed" -eq 0 ]; then check; else note "| the tests | not run | |"; fi
{ printf '\n## Fused against cuBLAS with the scores in memory\n\n'; [ -z "$emulated" ] || echo "Times of a pretended GPU mean nothing."; echo; cat "$logs/bench.md" 2>/dev/null || true; } >>"$report"
for log in "${details[@]}"; do note ""; note "## $(basename "$log")"; note '```'; tail -n 60 "$log" >>"$report"; note '```'; done
say "$failed steps failed; the report is $report"
[ "$failed" -eq 0 ]
