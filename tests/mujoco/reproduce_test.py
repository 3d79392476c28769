# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""tools/reproduce.sh mujoco on a tiny data set: killed in the middle, resumed, reported; and its refusals.

usage: reproduce_test.py PWDICE REPRODUCE.SH
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

program, script = sys.argv[1:3]


def reproduce(*arguments, **options):
    return subprocess.Popen([script, "mujoco", *arguments], env={**os.environ, "PWDICE_PROGRAM": program, **options},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(child, code):
    printed, _ = child.communicate(timeout=400)
    assert child.returncode == code, printed
    return printed


def scores(out, name):
    """The record of a run without its times."""
    lines = open(os.path.join(out, "runs", name, "metrics.csv")).read().splitlines()
    return [",".join(line.split(",")[:2] + line.split(",")[3:]) for line in lines]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        data, out = os.path.join(scratch, "data"), os.path.join(scratch, "out")
        os.mkdir(data)
        for kind, seed in (("expert", "1"), ("random", "9")):
            subprocess.run([program, "data", "collect", "--env", "halfcheetah", "--policy", "random", "--episodes", "2", "--seed", seed,
                            "--out", os.path.join(data, f"halfcheetah_{kind}.hdf5")], check=True, stdout=subprocess.DEVNULL)
        small = ["--data", data, "--env", "halfcheetah", "--seeds", "0", "--steps", "40", "--set", "contrastive.batch=64",
                 "--set", "evaluation.episodes=1", "--set", "run.checkpoint_every=1"]
        whole = os.path.join(scratch, "whole")
        finish(reproduce(*small, "--out", whole, "--methods", "pwdice,bc"), 0)

        for how, code in ((signal.SIGTERM, 1), (signal.SIGKILL, -signal.SIGKILL)):
            child = reproduce(*small, "--out", out, "--methods", "pwdice,bc")
            metrics = os.path.join(out, "runs", "halfcheetah-pwdice-0", "metrics.csv")
            while child.poll() is None and not (os.path.exists(metrics) and os.path.getsize(metrics) > 200):
                time.sleep(0.02)
            child.send_signal(how)
            printed = finish(child, code)
            assert how == signal.SIGKILL or "interrupted; the same command goes on" in printed, printed
        deadline = time.time() + 60
        while True:  # a killed scheduler's runs end by themselves, and hold their lock until then
            printed = finish(reproduce(*small, "--out", out, "--methods", "pwdice,bc"), 0)
            if "another process trains it" not in printed or time.time() > deadline:
                break
            time.sleep(0.5)
        for name in ("halfcheetah-pwdice-0", "halfcheetah-bc-0"):
            assert scores(out, name) == scores(whole, name), name
        report = open(os.path.join(out, "report.md")).read()
        for part in ("2 of 2 runs finished", "| PW-DICE |", "| BC |", "1 M dual steps, extrapolated", "pwdice train --profile pwdice"):
            assert part in report, report
        assert "<svg" in open(os.path.join(out, "report.html")).read()
        assert "2 finished before" in finish(reproduce(*small, "--out", out, "--methods", "pwdice,bc"), 0)

        other = finish(reproduce(*small, "--out", out, "--methods", "bc", "--set", "gamma=0.9"), 1)
        assert "was trained with gamma = 0.998, not 0.9" in other, other
        assert "hopper_expert.hdf5 does not exist" in finish(reproduce(*small, "--out", out, "--env", "hopper"), 1)
        assert "no model file" in finish(reproduce(*small, "--out", out, PWDICE_MUJOCO_MODELS="/no/such"), 1)
        assert "--methods: foo is none of" in finish(reproduce(*small, "--methods", "foo"), 1)


if __name__ == "__main__":
    main()
