# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""What the peers share: the training steps' networks and batches, drawn by numpy from one seed, and the timing.

The names are those of pwdice_bench. Weights are {network: [(W, b), ...]} with W (in, out), batches {name: POOL arrays}; a
step is forward, loss, backward and Adam on one batch of the pool after the other. Peers print one JSON line: the median
and the fastest step, and the loss before the first update, which all peers must agree on.
"""
import json
import math
import os
import statistics
import sys
import time

import numpy as np

STATE, ACTION, POOL = 11, 3, 4
EPS, GAMMA, BETA, PENALTY = 0.5, 0.999, 5.0, 10.0
LEARNING_RATE = {"discriminator": 3e-4, "bc": 1e-3, "infonce": 1e-3, "dual_paired": 3e-4, "dual_all_pairs": 3e-4}


def problem(step, size):
    """`size` as in the benchmark's name: 1024, or 4096x1000 for states of I and of E."""
    g = np.random.default_rng(0)

    def layers(*widths):
        out = []
        for i, o in zip(widths, widths[1:]):
            k = 1 / math.sqrt(i)
            out.append((g.uniform(-k, k, (i, o)), g.uniform(-k, k, o)))
        return out

    def states(rows, cols=STATE):
        return [g.standard_normal((rows, cols)) for _ in range(POOL)]

    n, m = (int(v) for v in size.split("x")) if "x" in size else (int(size),) * 2
    if step == "discriminator":
        return {"net": layers(STATE, 256, 256, 1)}, {
            "expert": states(n), "offline": states(n), "mix": [g.random((n, 1)) for _ in range(POOL)]}
    if step == "bc":
        return {"trunk": layers(STATE, 256, 256), "mean": layers(256, ACTION), "logvar": layers(256, ACTION)}, {
            "s": states(n), "a": [np.tanh(0.5 * a) for a in states(n, ACTION)],
            "w": [g.random(n) for _ in range(POOL)]}
    if step == "infonce":
        s = states(n)
        return {"encoder": layers(STATE, 128, 128, 32), "w0": g.random((32, 32))}, {
            "s": s, "s_next": [x + 0.1 * g.standard_normal(x.shape) for x in s]}
    # The cost is made of tables, as in pwdice: embeddings of both sides and R.
    unit = lambda z: z / np.linalg.norm(z, axis=1, keepdims=True)
    return {"trunk": layers(STATE, 256, 256), "heads": [layers(256, 1)[0] for _ in range(3)]}, {
        "pair": states(n), "expert": states(m), "s": states(n), "s_next": states(n),
        "initial": states(1024), "expert_linear": states(m),
        "alive": [(g.random((n, 1)) > 0.001).astype(float) for _ in range(POOL)],
        "z": [unit(z) for z in states(n, 32)], "z_expert": [unit(z) for z in states(m, 32)],
        "reward": [g.standard_normal((n, 1)) for _ in range(POOL)]}


def measure(run, peer, seconds=3.0):
    """run(i) does step i and returns its loss. One process per measurement, so that nothing is left over."""
    loss = float(run(0))
    i, start = 1, time.perf_counter()
    while i < 4 or (time.perf_counter() - start < 0.5 and i < 500):
        run(i)
        i += 1
    times, start = [], time.perf_counter()
    while len(times) < 7 or time.perf_counter() - start < seconds:
        t = time.perf_counter()
        run(i)
        times.append((time.perf_counter() - t) * 1e3)
        i += 1
    print(json.dumps({"peer": peer, "median_ms": statistics.median(times), "best_ms": min(times), "loss": loss}))


def arguments():
    """step, size, mode, threads; the thread count must be in the environment before a framework is imported."""
    step, size, mode, threads = sys.argv[1:5]
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = threads
    return step, size, mode, int(threads)
