# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""tools/check_layers.py finds what it is there to find."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "check_layers.py")
LICENCE = "// SPDX-License-Identifier: MIT\n// Copyright (c) 2026 The pwdice authors\n"


def check(files, tracked=()):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        if tracked:
            subprocess.run(["git", "init", "-q", root], check=True)
            subprocess.run(["git", "-C", root, "add", *tracked], check=True)
        result = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout


class CheckLayers(unittest.TestCase):
    def expect(self, sentence, path, text, others=()):
        status, output = check({"kernels/view.h": LICENCE, path: text, **dict(others)})
        self.assertEqual(status, 1, output)
        self.assertIn(f"{path}:", output)
        self.assertIn(sentence, output)

    def test_good_tree_passes(self):
        status, output = check({
            "kernels/view.h": LICENCE + "#include <vector>\n",
            "kernels/cuda/adam.cu": LICENCE + '#include <cuda_runtime.h>\n#include "../view.h"\n',
            "host/tape.cpp": LICENCE + '#include "../kernels/view.h"\n#include "hwy/highway.h"\n',
            "datasets/hdf5_file.cpp": LICENCE + "#include <hdf5.h>\n",
        })
        self.assertEqual((status, output), (0, "4 files, 0 violations\n"))

    def test_include_to_the_right(self):
        self.expect("kernels may not include host", "kernels/bad.cpp", LICENCE + '#include "../host/tape.h"\n',
                    {"host/tape.h": LICENCE}.items())

    def test_include_between_siblings(self):
        self.expect("tests may not include bench", "tests/bad.cpp", LICENCE + '#include "../bench/timer.h"\n',
                    {"bench/timer.h": LICENCE}.items())

    def test_path_that_is_not_relative(self):
        self.expect("included by relative path", "host/bad.cpp", LICENCE + "#include <kernels/view.h>\n")
        self.expect("paths are relative to the including file", "host/bad.cpp", LICENCE + '#include "kernels/view.h"\n')

    def test_foreign_headers(self):
        self.expect("CUDA headers belong", "host/bad.cpp", LICENCE + "#include <cuda_runtime.h>\n")
        self.expect("HDF5 headers belong", "models/bad.cpp", LICENCE + "  #  include <hdf5.h>\n")

    def test_printing_and_exiting(self):
        for bad in ("std::cerr << x;", 'printf("x");', 'std::fprintf(stderr, "x");', 'fputs("x", stdout);', "std::exit(1);",
                    "::abort();", "assert(x);", "  if (x) std::terminate();"):
            self.expect("neither prints nor ends", "models/bad.cpp", LICENCE + bad + "\n")
        good = ('std::snprintf(text, 9, "x");\nfprintf(file, "x");\nstatic_assert(x);\nloop.exit();\nMaze::exit(1);\n'
                'char exit_code;  // printf(x)\nauto text = "\\"assert(x)";\n')
        status, output = check({"host/good.cpp": LICENCE + good, "tools/main.cpp": LICENCE + "std::cout << x;\n"})
        self.assertEqual((status, output), (0, "2 files, 0 violations\n"))

    def test_top_level(self):
        good = {"kernels/view.h": LICENCE, "README.md": "", "LICENSE": "", ".clang-format": "", ".ci/run": ""}
        status, output = check({**good, "build/x.o": "", "notes.txt": ""}, good)
        self.assertEqual((status, output), (0, "1 files, 0 violations\n"))
        for path in ("docs/index.md", "notes.txt", "Makefile", "host"):
            status, output = check({**good, path: ""}, [*good, path])
            self.assertEqual(status, 1, output)
            self.assertIn(f"{path.split('/')[0]}:1: does not belong at the top", output)

    def test_shape_of_files(self):
        self.expect("two licence lines", "host/bad.cpp", "int x;\n")
        self.expect("at most 400", "host/bad.cpp", LICENCE + "\n" * 399)
        self.expect("a README at most 40", "host/README.md", "\n" * 41)

    def test_wrong_directory(self):
        status, output = check({"elsewhere/file.txt": ""})
        self.assertEqual(status, 1)
        self.assertIn("holds none of", output)


if __name__ == "__main__":
    unittest.main()
