# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Each check of tools/gpu_model objects to the kernel planted for it, and to no other.

    gpu_model_test.py <tools/gpu_model> <gpu_model_planted> <nvcc>
"""
import os
import subprocess
import sys
import tempfile
import unittest

MODEL, PROGRAM, NVCC = sys.argv[1:4]
sys.path.insert(0, MODEL)

import checks  # noqa: E402
import kernels as data  # noqa: E402
import names  # noqa: E402
from devices import DEVICES  # noqa: E402
from roofline import occupancy, roofline  # noqa: E402

FILES = ("planted_kernels.cu",)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), FILES[0])


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            counters, cubin = os.path.join(directory, "counters.json"), os.path.join(directory, "planted.cubin")
            subprocess.run([PROGRAM, counters], check=True)
            subprocess.run([NVCC, "-arch=sm_80", "-cubin", SOURCE, "-o", cubin], check=True)
            cls.kernels = data.load_counters(counters)
            cls.resources = data.load_resources(cubin, data.find_cuobjdump())
        cls.by_name = {kernel.name.split("::")[-1]: kernel for kernel in cls.kernels}

    def offenders(self, sentences):
        found = list(sentences)
        return {name for name in ("good", "uncoalesced", "conflicting", "greedy", "spilling")
                if any(f"{name}_kernel" in sentence for sentence in found)}

    def test_spill(self):
        self.assertEqual(self.offenders(checks.spills(self.resources)), {"spilling"})

    def test_uncoalesced_load(self):
        self.assertEqual(self.offenders(checks.uncoalesced(self.kernels, FILES)), {"uncoalesced"})

    def test_bank_conflict(self):
        self.assertEqual(self.offenders(checks.bank_conflicts(self.kernels, FILES)), {"conflicting"})

    def test_files_that_are_no_tiles_may_do_it(self):
        for check in (checks.uncoalesced, checks.bank_conflicts):
            self.assertEqual(self.offenders(check(self.kernels, ("other.cuh",))), set())

    def test_tile_file_that_nothing_reads(self):
        for check in (checks.uncoalesced, checks.bank_conflicts):
            sentences = list(check(self.kernels, ("other.cuh",)))
            self.assertEqual(len(sentences), 1)
            self.assertIn("other.cuh: no access was counted", sentences[0])

    def test_traffic(self):
        names_of = [k.name for k in self.kernels if "good" in k.name or "greedy" in k.name]
        limits = {"n": 32, "d": 32, "loaded": 4096, "stored": 4096}
        sentences = list(checks.traffic(self.kernels, names_of, limits))
        self.assertEqual(self.offenders(sentences), {"greedy"})
        self.assertEqual(len(sentences), 2, "loads and stores")
        self.assertIn("was not executed", next(checks.traffic([], ["absent"])))

    def test_kernel_that_never_ran(self):
        self.assertEqual(self.offenders(checks.unexecuted(self.kernels, self.resources)), {"spilling"})

    def test_counts(self):
        good, greedy = self.by_name["good_kernel"], self.by_name["greedy_kernel"]
        self.assertEqual((good.loaded, good.stored), (4096, 4096))
        self.assertEqual(greedy.loaded, 16 * 1024 * 32 * 4)
        self.assertEqual(self.by_name["uncoalesced_kernel"].total("sectors", ("ld",)), 32 * 32)

    def test_occupancy_and_roofline(self):
        a100 = DEVICES[80]
        self.assertEqual(occupancy(a100, 32, 256, 0), (8, 1.0))
        self.assertEqual(occupancy(a100, 128, 256, 0), (2, 0.25))
        self.assertEqual(occupancy(a100, 32, 256, 80 * 1024)[0], 2)
        unit, time, cold = roofline(a100, self.by_name["greedy_kernel"])
        self.assertEqual(unit, "L2")
        self.assertAlmostEqual(time, (16 * 1024 * 32 * 4 + 16 * 4096) / (64 * 16 * 1.41e3), places=3)
        self.assertGreaterEqual(cold, time)


class Names(unittest.TestCase):
    def test_short(self):
        self.assertEqual(names.short("void pwdice::cuda::(anonymous namespace)::f_kernel<(pwdice::A)0>(float const*, int)"),
                         "f_kernel<(A)0>")
        self.assertTrue(names.is_ours("void pwdice::cuda::f_kernel<int>(int)"))
        self.assertFalse(names.is_ours("void cub::f<pwdice::A>(pwdice::A)"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
