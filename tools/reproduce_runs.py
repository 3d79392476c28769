#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Trains every (task, method, seed) of the comparison, several at once, each with one thread; see reproduce.sh.

A run that is finished is skipped, an interrupted one goes on from its last checkpoint, one that was made with other
settings is an error. Ctrl-C or SIGTERM lets the running ones write a checkpoint.

Steps. --steps is dual.steps of every method. The profiles `paper` and `code` are made for 1,050,000 dual steps; their
policy.start shrinks in proportion, contrastive.steps and discriminator.steps shrink in proportion but not below the
number of samples (steps x batch) that the `pwdice` profile takes. Every method is evaluated ten times.
"""
import argparse
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import reproduce_report

# Name: profile and what differs from it.
METHODS = {
    "pwdice": ("pwdice", {}),
    "paper": ("paper", {}),
    "code": ("code", {}),
    "smodice-kl": ("pwdice", {"method": "smodice", "divergence": "kl"}),
    "smodice-chi2": ("pwdice", {"method": "smodice", "divergence": "chi2"}),
    "bc": ("pwdice", {"method": "bc"}),
    "cost-none": ("pwdice", {"cost.distance": "none"}),
    "cost-cosine": ("pwdice", {"cost.distance": "cosine"}),
    "cost-squared-euclidean": ("pwdice", {"cost.distance": "squared_euclidean"}),
}
TASKS = ("hopper", "halfcheetah", "walker2d", "ant", "ant111")
EVALUATIONS = 10


def stop_with(message):
    sys.exit(f"reproduce: {message}")


def parse_toml(text):
    """The flat part of TOML that pwdice prints: key.subkey -> text of the value."""
    values, table = {}, ""
    for line in text.splitlines():
        if line.startswith("["):
            table = line.strip("[]") + "."
        elif " = " in line:
            key, value = line.split(" = ", 1)
            values[table + key] = value
    return values


class Runs:
    """What is to be trained, and the commands that do it."""

    def __init__(self, options):
        self.options = options
        if not shutil.which(options.program):
            stop_with(f"{options.program} is not a program")
        self.profiles = {p: parse_toml(self.call("train", "--profile", p, "--print-config"))
                         for p in ("pwdice", "paper", "code")}
        self.jobs = [(task, method, seed) for seed in options.seeds for task in options.env for method in options.methods]

    def call(self, *arguments):
        done = subprocess.run([self.options.program, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            stop_with(done.stderr.strip().removeprefix("pwdice: ") or f"{self.options.program} failed")
        return done.stdout

    def steps(self, profile, key):
        return int(self.profiles[profile][key])

    def settings(self, task, method, seed):
        options, (profile, changes) = self.options, METHODS[method]
        wanted = options.steps or self.steps("pwdice", "dual.steps")

        def scaled(of, key):
            return round(self.steps(of, key) * min(1.0, wanted / self.steps(of, "dual.steps")))

        def prepared(phase):
            samples = scaled("pwdice", f"{phase}.steps") * self.steps("pwdice", f"{phase}.batch")
            return max(scaled(profile, f"{phase}.steps"), -(-samples // self.steps(profile, f"{phase}.batch")))

        every = max(1, wanted // EVALUATIONS)
        out = {
            "seed": seed, "threads": 1,
            "data.environment": task,
            "data.expert": os.path.join(options.data, f"{task}_expert.hdf5"),
            "data.agnostic": os.path.join(options.data, f"{task}_random.hdf5"),
            "contrastive.steps": prepared("contrastive"),
            "discriminator.steps": prepared("discriminator"),
            "dual.steps": wanted,
            "policy.start": scaled(profile, "policy.start"),
            "evaluation.every": every,
            "run.log_every": every // 2 if every % 2 == 0 else every,
            "run.checkpoint_every": max(1, min(1000, wanted // 4)),
            "run.keep_checkpoints": 0,
        }
        out.update(changes)
        out.update(setting.split("=", 1) for setting in options.set)
        return profile, out

    def directory(self, job):
        return os.path.join(self.options.out, "runs", "{}-{}-{}".format(*job))

    def train_command(self, job, print_config=False):
        profile, settings = self.settings(*job)
        command = [self.options.program, "train", "--profile", profile]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        return command + ["--out", self.directory(job), "--print-config" if print_config else "--json"]

    def check(self):
        """Before anything is trained: the data, the simulator, and runs that were made with other settings."""
        for task in self.options.env:
            for kind in ("expert", "random"):
                path = os.path.join(self.options.data, f"{task}_{kind}.hdf5")
                if not os.path.exists(path):
                    stop_with(f"{path} does not exist; --data DIR names a directory with <task>_expert.hdf5 and "
                              f"<task>_random.hdf5 in D4RL's schema, which `pwdice data collect --env {task} --policy "
                              f"{'random --transitions 200000' if kind == 'random' else 'EXPERT.h5 --episodes 40'} --out {path}` makes")
            with tempfile.TemporaryDirectory() as scratch:  # one step shows that simulator and model are there
                self.call("data", "collect", "--env", task, "--policy", "random", "--transitions", "1", "--out",
                          os.path.join(scratch, "probe.hdf5"))
        for job in self.jobs:
            config = os.path.join(self.directory(job), "config.toml")
            wanted = self.call(*self.train_command(job, print_config=True)[1:])
            if os.path.exists(config) and open(config).read() != wanted:
                was, now = parse_toml(open(config).read()), parse_toml(wanted)
                key = next(k for k in sorted(was.keys() | now.keys()) if was.get(k) != now.get(k))
                stop_with(f"{self.directory(job)} was trained with {key} = {was.get(key)}, not {now.get(key)}; choose "
                          f"another --out or remove it")

    def finished(self, job):
        return os.path.exists(os.path.join(self.directory(job), "diagnostics.json"))

    def command(self, job):
        """Train from the start, or go on; a run without a checkpoint never began."""
        directory = self.directory(job)
        if os.path.exists(os.path.join(directory, "checkpoints", "last.ckpt")):
            return [self.options.program, "resume", directory, "--json"]
        shutil.rmtree(directory, ignore_errors=True)
        return self.train_command(job)


def die_with_parent():
    """Linux: a child whose scheduler was killed gets SIGTERM and writes its checkpoint."""
    try:
        import ctypes
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    except OSError:
        pass


class Scheduler:
    def __init__(self, runs):
        self.runs, self.running, self.failed, self.stopping = runs, [], [], False
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, self.stop)

    def stop(self, *_):
        self.stopping = True
        for _, child, *_ in self.running:
            child.terminate()

    def start(self, job):
        """False when another process is training it."""
        path = self.runs.directory(job)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lock = open(path + ".lock", "w")
        try:  # the child holds it too, so it lasts as long as the training does
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        command = self.runs.command(job)
        log = open(path + ".log", "a")
        child = subprocess.Popen(command, stdout=log, stderr=log, pass_fds=[lock.fileno()], preexec_fn=die_with_parent,
                                 start_new_session=True)
        log.close()
        print(f"reproduce: {' '.join(map(str, job))}: {'goes on' if 'resume' in command else 'starts'}", flush=True)
        self.running.append((job, child, lock))
        return True

    def collect(self):
        for entry in list(self.running):
            job, child, lock = entry
            if child.poll() is None:
                continue
            self.running.remove(entry)
            lock.close()
            name = " ".join(map(str, job))
            if self.runs.finished(job):
                run = reproduce_report.Run(self.runs.directory(job))
                left = sum(not self.runs.finished(j) for j in self.runs.jobs)
                print(f"reproduce: {name}: score {run.score():.1f}, {run.wall_clock():.0f} s; {left} of "
                      f"{len(self.runs.jobs)} runs to go", flush=True)
                write_report(self.runs)
            elif child.returncode != 0:
                lines = open(self.runs.directory(job) + ".log").read().splitlines()
                self.failed.append(f"{name}: {lines[-1] if lines else 'ended without a word'}")
                print(f"reproduce: failed: {self.failed[-1]}", flush=True)

    def work(self):
        waiting = [job for job in self.runs.jobs if not self.runs.finished(job)]
        print(f"reproduce: {len(self.runs.jobs)} runs, {len(self.runs.jobs) - len(waiting)} finished before, "
              f"{self.runs.options.jobs} at a time", flush=True)
        while (waiting and not self.stopping) or self.running:
            while waiting and len(self.running) < self.runs.options.jobs and not self.stopping:
                job = waiting.pop(0)
                if not self.runs.finished(job) and not self.start(job):
                    print(f"reproduce: {' '.join(map(str, job))}: another process trains it, left to that one", flush=True)
            time.sleep(0.2)
            self.collect()


def write_report(runs):
    entries = [(job, runs.directory(job), "pwdice " + " ".join(shlex.quote(a) for a in runs.train_command(job)[1:]))
               for job in runs.jobs]
    return reproduce_report.write(runs.options.out, entries, runs.options.data, runs.options.command_line,
                                  runs.options.program)


def arguments():
    names = lambda text: [part for part in text.split(",") if part]
    parser = argparse.ArgumentParser(prog="tools/reproduce.sh mujoco", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cpu/bin/pwdice", help=argparse.SUPPRESS)
    parser.add_argument("--data", default="data/mujoco", help="directory of <task>_expert.hdf5 and <task>_random.hdf5")
    parser.add_argument("--out", default="runs/mujoco", help="where runs/ and the reports go")
    parser.add_argument("--env", type=names, default=["hopper", "halfcheetah", "walker2d"], help="tasks")
    parser.add_argument("--methods", type=names, default=list(METHODS), help=", ".join(METHODS))
    parser.add_argument("--seeds", type=names, default=["0", "1", "2"])
    parser.add_argument("--steps", type=int, default=0, help="dual steps of every method; default: the pwdice profile's")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, each with one thread")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every run, after all else")
    parser.add_argument("--report-only", action="store_true", help="write the reports of what is there")
    options = parser.parse_args()
    options.command_line = " ".join(["tools/reproduce.sh mujoco"] + [
        shlex.quote(a) for i, a in enumerate(sys.argv[1:]) if "--program" not in sys.argv[i:i + 2] and a != "--report-only"])
    for name, given, known in (("--env", options.env, TASKS), ("--methods", options.methods, METHODS)):
        wrong = [value for value in given if value not in known]
        if wrong or not given:
            stop_with(f"{name}: {wrong[0] if wrong else 'nothing'} is none of {', '.join(known)}")
    if not options.seeds or not all(seed.isdigit() for seed in options.seeds):
        stop_with("--seeds: expected whole numbers such as 0,1,2")
    if options.jobs < 1 or options.steps < 0:
        stop_with(f"--jobs {options.jobs}, --steps {options.steps}: expected positive numbers")
    if any("=" not in setting for setting in options.set):
        stop_with("--set: expected KEY=VALUE")
    return options


def main():
    runs = Runs(arguments())
    scheduler = Scheduler(runs)
    if not runs.options.report_only:
        runs.check()
        scheduler.work()
    if scheduler.stopping:
        stop_with("interrupted; the same command goes on")
    print("reproduce: wrote " + " and ".join(write_report(runs)))
    if scheduler.failed:
        stop_with(f"{len(scheduler.failed)} runs failed, the first: {scheduler.failed[0]}")


if __name__ == "__main__":
    main()
