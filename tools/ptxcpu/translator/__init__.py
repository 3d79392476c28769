# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Turns PTX text into C++ that runs every CUDA thread as a fiber."""
