# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""The translator refuses what it does not know, and translates what it should."""

import unittest

from translator.module_writer import translate
from translator.parser import parse_module, split_operands
from translator.types import parse_integer

_REGISTERS = (".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>; "
              ".reg .b16 %rs<9>; .reg .pred %p<9>;")


def refusals(instruction):
    text = f".target sm_80\n.visible .entry k(){{\n{_REGISTERS}\n{instruction}\nret;\n}}\n"
    return translate(text)[2]


class TranslatorTest(unittest.TestCase):
    def test_refuses_unknown(self):
        for instruction in (
            "frobnicate.b32 %r1, %r2;",
            "add.wild.s32 %r1, %r2, %r3;",
            "mbarrier.init.shared.b64 [%r1], 1;",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];",
            "wgmma.fence.sync.aligned;",
            "tcgen05.fence::before_thread_sync;",
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
            "{%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
            "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
            "{%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4}, %r7, 0x0;",
            "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f5,%f6}];",
            "shfl.bfly.b32 %r1, %r2, 1, 31;",
            "barrier.cluster.arrive.aligned;",
            "vadd2.s32.s32.s32 %r1, %r2, %r3, %r4;",
            "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;",
            "ld.shared::cluster.b32 %r1, [%r2];",
            "mov.b32 %r1, %unknown;",
            "bra nowhere;",
        ):
            with self.subTest(instruction=instruction):
                self.assertEqual(len(refusals(instruction)), 1)

    def test_translates_known(self):
        for instruction in (
            "add.cc.u32 %r1, %r2, %r3; addc.u32 %r1, %r2, %r3;",
            "bmsk.clamp.b32 %r1, %r2, %r3;",
            "redux.sync.add.s32 %r1, %r2, -1;",
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};",
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4}, [%r5];",
            "red.global.add.v4.f32 [%rd1], {%f1,%f2,%f3,%f4};",
            "atom.global.add.noftz.f16x2 %r1, [%rd1], %r2;",
            "fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;",
            "tanh.approx.f32 %f1, %f2;",
            "cvt.rn.bf16x2.f32 %r1, %f1, %f2;",
            "min.f32 %f1, %f2, %f3, %f4;",
            "bar.red.popc.u32 %r1, 0, %p1;",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd1,%fd2};",
            "@!%p1 st.global.v2.f32 [%rd1+-8], {%f1, %f2};",
            "{ .reg .pred p; setp.lt.and.f32 p|%p2, %f1, 0f3F800000, !%p1; @p bra L; L: }",
        ):
            with self.subTest(instruction=instruction):
                self.assertEqual(refusals(instruction), [])

    def test_parses_globals_and_locations(self):
        module = parse_module('.target sm_90\n.file 1 "a/b.cu"\n.global .align 4 .b8 table[4] = {1, 2, 255, 0};\n'
                              ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 8 .b8 fixed[12];\n"
                              ".visible .entry k(.param .u64 k_0, .param .align 4 .b8 k_1[12])\n.maxntid 64, 2\n"
                              "{\n.loc 1 17 3\nret;\n}\n")
        self.assertEqual(module.target, 90)
        self.assertEqual(module.globals["table"].size, 4)
        self.assertEqual((module.shared["dynamic"], module.shared["fixed"], module.shared_bytes), (None, 0, 12))
        kernel = module.functions[0]
        self.assertEqual([(p.offset, p.size) for p in kernel.params], [(0, 8), (8, 12)])
        self.assertEqual(kernel.max_threads, 128)
        self.assertEqual(module.locations, [(9, "a/b.cu", 17)])

    def test_small_parsers(self):
        self.assertEqual(split_operands("{%r1, %r2}, [%rd1+4], 3"), ["{%r1, %r2}", "[%rd1+4]", "3"])
        self.assertEqual([parse_integer(t) for t in ("017", "-0x10", "8U", "0")], [15, -16, 8, 0])

    def test_refused_kernel_does_not_hide_others(self):
        text = (".target sm_80\n.visible .entry good(){\nret;\n}\n.visible .entry bad(){\nfrobnicate;\nret;\n}\n")
        _, kernels, refused = translate(text)
        self.assertEqual(kernels, ["good"])
        self.assertEqual([name for name, _ in refused], ["bad"])


if __name__ == "__main__":
    unittest.main()
