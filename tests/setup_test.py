# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""tools/setup.sh on a distribution that has what is needed, and on one that has not; apt is pretended."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "tools" / "setup.sh"


def setup(versions):
    """Exit status, output and calls of apt-get where nothing is installed and apt knows these versions."""
    with tempfile.TemporaryDirectory() as directory:
        versions = {"cmake": "3.25.1-1", **versions}
        policy = "".join(f'{name}) echo "  Candidate: {version}" ;; ' for name, version in versions.items())
        programs = {"dpkg-query": "exit 1", "id": "echo 0", "apt-get": f'echo "$@" >>{directory}/calls',
                    "apt-cache": f'case $2 in {policy} esac'}
        for name, text in programs.items():
            program = pathlib.Path(directory, name)
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        done = subprocess.run([SCRIPT], env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"},
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr, pathlib.Path(directory, "calls").read_text().splitlines()


@unittest.skipUnless(shutil.which("dpkg"), "not a distribution that setup.sh knows")
class Setup(unittest.TestCase):
    def test_supported(self):
        status, output, calls = setup({"libtomlplusplus-dev": "3.3.0+ds-1", "libhwy-dev": "1.0.3-3+deb12u1"})
        self.assertEqual((status, len(calls)), (0, 2), output)
        self.assertIn("python3", calls[1].split())

    def test_too_old(self):
        for versions in ({"libhwy-dev": "1.0.7"}, {"libtomlplusplus-dev": "(none)", "libhwy-dev": "1.0.7"},
                         {"libtomlplusplus-dev": "3.3.0", "libhwy-dev": "0.16.0-1"}, {"libtomlplusplus-dev": "3.3.0"}):
            status, output, calls = setup(versions)
            self.assertEqual((status, calls), (1, ["update -qq"]), output)
            self.assertRegex(output, r"^[^\n]*Debian 12 or Ubuntu 24.04 is needed\n$")  # and no other line


    def test_offline(self):
        status, output, calls = setup({"cmake": "(none)"})
        self.assertEqual((status, calls), (1, ["update -qq"]), output)
        self.assertIn("no package lists", output.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
