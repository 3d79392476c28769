# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Names of kernels, short enough for a table; the same for a symbol and for what ptxcpu calls it."""
import re
import subprocess


def demangled(symbols):
    """The names of mangled symbols, in order."""
    result = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def without_parameters(name):
    """f<(A)0>(int, float) -> f<(A)0>: cuts at the bracket that opens the parameter list."""
    depth = 0
    for at, character in enumerate(name):
        if character in "<" and not name.startswith("operator<", max(0, at - 8)):
            depth += 1
        elif character == ">":
            depth -= 1
        elif character == "(" and depth == 0 and not name.startswith("(anonymous namespace)", at):
            return name[:at]
    return name


def short(name):
    name = without_parameters(re.sub(r"^void ", "", name))
    if "gemm_kernel<cutlass" in name:
        layouts = re.findall(r"cutlass::layout::(Row|Column)Major", name)[:2]
        kind = "Tf32" if "OpClassTensorOp" in name else "Simt"
        return f"gemm_kernel<{kind}, {', '.join(layouts)}>"
    name = re.sub(r"\(anonymous namespace\)::|pwdice::cuda::|pwdice::", "", name)
    return name.replace("> >", ">>")


def is_ours(name):
    """Whether the project answers for this kernel; those of CUB and Thrust are only shown."""
    return "pwdice::" in without_parameters(name).split("<")[0]
