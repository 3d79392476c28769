# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""pwdice's training steps beside the same steps in PyTorch and JAX, alternately, on the same number of threads:

  tools/setup.sh --peers
  build/peers/bin/python bench/peers [--rounds 3] [--steps infonce,bc] [--bench build/cpu/bin/pwdice_bench]

Prints a table: pwdice's median step, how many times the machine's bound that is, and how many times as long each peer
takes, by medians over all rounds (by the fastest steps in brackets). `malloc` is torch with an allocator that keeps freed
memory, eager or compiled, whichever is faster.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
STEPS = {"discriminator": ["512"], "bc": ["1024"], "infonce": ["4096"], "dual_paired": ["1024"],
         "dual_all_pairs": ["1024x1024", "4096x1000"]}
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
PEERS = {"eager": ("torch_steps.py", "eager", {}), "compile": ("torch_steps.py", "compile", {}),
         "eager, malloc": ("torch_steps.py", "eager", KEEP), "compile, malloc": ("torch_steps.py", "compile", KEEP),
         "jax": ("jax_steps.py", "jit", {})}


def last_json(command, extra):
    done = subprocess.run(command, env=dict(os.environ, **extra), capture_output=True, text=True)
    lines = [x for x in done.stdout.splitlines() if x.startswith("{")]
    if done.returncode or not lines:
        sys.exit(f"peers: {' '.join(map(str, command))} failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return json.loads(lines[-1])


def run_bench(bench, name, threads):
    done = subprocess.run([bench, f"--threads={threads}", f"--benchmark_filter=^{name}$", "--benchmark_format=json",
                           "--benchmark_min_time=1.5"], capture_output=True, text=True)
    if done.returncode or not done.stdout:
        sys.exit(f"peers: {bench} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)["benchmarks"][0]


class Times:
    """Medians and fastest steps of one program over all rounds."""

    def __init__(self):
        self.medians, self.bests = [], []

    def add(self, result):
        self.medians.append(result["median_ms"])
        self.bests.append(result["best_ms"])

    def median(self):
        return statistics.median(self.medians)

    def best(self):
        return min(self.bests)


def compare(step, size, options):
    name, ours, peers, losses, bounds = f"step/{step}/{size}", Times(), {p: Times() for p in PEERS}, {}, []
    for _ in range(options.rounds):
        for peer, (script, mode, extra) in PEERS.items():
            result = run_bench(options.bench, name, options.threads)
            ours.add(result)
            bounds.append(result["bound_ms"])
            result = last_json([sys.executable, HERE / script, step, size, mode, str(options.threads)], extra)
            peers[peer].add(result)
            losses[peer] = result["loss"]
    if max(losses.values()) - min(losses.values()) > 1e-4 * abs(losses["jax"]):
        sys.exit(f"peers: the losses of {name} differ: {losses}")
    kept = min((peers["eager, malloc"], peers["compile, malloc"]), key=Times.median)
    columns = [peers["eager"], peers["compile"], kept, peers["jax"]]
    ratios = [f"{p.median() / ours.median():.2f} ({p.best() / ours.best():.2f})" for p in columns]
    bound = min(bounds)
    row = [f"`{name}`", f"{ours.median():.2f} ({ours.best():.2f})", f"{ours.median() / bound:.2f} ({ours.best() / bound:.2f})"]
    print("| " + " | ".join(row + ratios) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each peer takes its turn (3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of pwdice and its peers (all cores)")
    parser.add_argument("--steps", default=",".join(STEPS), help=f"some of {','.join(STEPS)} (all)")
    parser.add_argument("--bench", default=HERE.parent.parent / "build/cpu/bin/pwdice_bench", help="the program to compare")
    options = parser.parse_args()
    unknown = [s for s in options.steps.split(",") if s not in STEPS]
    if unknown:
        parser.error(f"there is no step '{unknown[0]}'; there are {', '.join(STEPS)}")
    if not (os.path.isfile(options.bench) and os.access(options.bench, os.X_OK)):
        parser.error(f"{options.bench} is no program: build it with cmake --preset cpu && cmake --build --preset cpu")
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    print(f"threads: {options.threads}, rounds: {options.rounds}; medians (fastest)\n")
    print("| step | pwdice, ms | x bound | torch eager | torch.compile | torch, malloc | jax |\n|" + "---|" * 7)
    for step in options.steps.split(","):
        for size in STEPS[step]:
            compare(step, size, options)


if __name__ == "__main__":
    main()
