# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""tools/setup.sh on a distribution that has what is needed, and on one where it is too old; apt is pretended, and so are
Python's packages."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "tools" / "setup.sh"
RECENT = {"cmake": "3.25.1-1", "libhwy-dev": "1.0.3-3+deb12u1", "libtomlplusplus-dev": "3.3.0+ds-1"}


def setup(versions, *options):
    """Exit status, output and calls of apt-get and python3 where nothing is installed and apt knows these versions."""
    with tempfile.TemporaryDirectory() as directory:
        tools, programs = pathlib.Path(directory, "tools"), pathlib.Path(directory, "programs")
        tools.mkdir(), programs.mkdir()
        shutil.copy(SCRIPT, tools)  # of its own: setup.sh works in the directory above it
        policy = "".join(f'{name}) echo "  Candidate: {version}" ;; ' for name, version in versions.items())
        texts = {"dpkg-query": "exit 1", "id": "echo 0", "apt-get": f'echo apt "$@" >>{directory}/calls',
                 "apt-cache": f"case $2 in {policy} esac", "python3": f'echo python "$@" >>{directory}/calls; exit 1'}
        for name, text in texts.items():
            program = programs / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        done = subprocess.run([tools / "setup.sh", *options], env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr, pathlib.Path(directory, "calls").read_text().splitlines()


@unittest.skipUnless(shutil.which("dpkg"), "not a distribution that setup.sh knows")
class Setup(unittest.TestCase):
    def test_recent(self):
        status, output, calls = setup(RECENT)
        self.assertEqual((status, len(calls)), (0, 2), output)
        self.assertTrue({"python3", *RECENT} <= set(calls[1].split()), calls)

    def test_old(self):
        for package, version in (("libtomlplusplus-dev", "(none)"), ("libhwy-dev", "0.16.0-1"), ("cmake", "3.22.1-1ubuntu1")):
            status, output, calls = setup({**RECENT, package: version, "libgtest-dev": "1.11"}, "--tests")
            self.assertEqual(len(calls), 3, output)
            asked = set(calls[1].split())
            self.assertTrue({"python3-venv", "clang"} <= asked and not asked & {"libclang-rt-dev", *RECENT}, calls)
            self.assertTrue(calls[2].startswith("python -m venv") and calls[2].endswith("build/deps/venv"), calls)
            self.assertIn("installing into build/deps", output)

    def test_offline(self):
        status, output, calls = setup({**RECENT, "cmake": "(none)"})
        self.assertEqual((status, calls), (1, ["apt update -qq"]), output)
        self.assertIn("no package lists", output.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
