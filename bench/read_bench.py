#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Reading 1 M x 11 gzip float32 rows: pwdice beside h5py on the same files, taking turns.

usage: read_bench.py BUILD_DIR/bin/read_bench [--rows 1000000] [--rounds 7]
Needs h5py and numpy. Prints the median and the fastest of each and their ratio (below 1: pwdice is faster).
"""
import argparse, os, statistics, subprocess, tempfile, time
import h5py, numpy as np


def make(path, rows, layout):
    # A random walk rounded like simulator states: compresses about as real observations do.
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(0, 0.01, (rows, 11)), 0).astype(np.float32)
    options = dict(compression="gzip", compression_opts=4)
    options |= {"rows": dict(chunks=(16384, 11), shuffle=True), "h5py default": dict(),
                "h5py default + shuffle": dict(shuffle=True), "columns": dict(chunks=(15625, 1))}[layout]
    with h5py.File(path, "w") as f:
        f.create_dataset("observations", data=x, **options)


def h5py_seconds(path):
    start = time.perf_counter()
    with h5py.File(path, "r") as f:
        f["observations"][()]
    return time.perf_counter() - start


def pwdice_seconds(program, path):
    return float(subprocess.run([program, path, "observations"], check=True, capture_output=True, text=True)
                 .stdout.split()[0])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("program")
    ap.add_argument("--rows", type=int, default=1_000_000)
    ap.add_argument("--rounds", type=int, default=7)
    a = ap.parse_args()
    print(f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}, {a.rows} x 11 float32, {os.cpu_count()} cores")
    print(f"{'layout':24} {'chunks':>12} {'h5py s':>16} {'pwdice s':>16} {'ratio':>12}   median (fastest)")
    with tempfile.TemporaryDirectory() as folder:
        for layout in ("rows", "h5py default", "h5py default + shuffle", "columns"):
            path = os.path.join(folder, "bench.hdf5")
            make(path, a.rows, layout)
            with h5py.File(path) as f:
                chunks = f["observations"].chunks
            theirs, ours = [], []
            for _ in range(a.rounds):
                theirs.append(h5py_seconds(path))
                ours.append(pwdice_seconds(a.program, path))
            m, n = statistics.median(theirs), statistics.median(ours)
            print(f"{layout:24} {str(chunks):>12} {m:7.3f} ({min(theirs):.3f}) {n:7.3f} ({min(ours):.3f}) "
                  f"{n / m:5.2f} ({min(ours) / min(theirs):.2f})")


if __name__ == "__main__":
    main()
