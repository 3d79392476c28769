# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""Steps gymnasium's v4 environments with random actions and records everything the C++ ones must reproduce.

usage: make_parity.py OUT.h5
"""
import sys

import gymnasium
import h5py
import numpy as np

STEPS = 1000
TASKS = {
    "hopper": ("Hopper-v4", {}),
    "halfcheetah": ("HalfCheetah-v4", {}),
    "walker2d": ("Walker2d-v4", {}),
    "ant": ("Ant-v4", {}),
    "ant111": ("Ant-v4", {"use_contact_forces": True}),
}


def record(env, seed):
    """Rows of (reset?, qpos, qvel before the step, action, observation, reward, terminated)."""
    random = np.random.default_rng(seed)
    rows = {k: [] for k in ("reset", "qpos", "qvel", "action", "observation", "reward", "terminated")}
    env.reset(seed=seed)
    fresh = True
    for _ in range(STEPS):
        data = env.unwrapped.data
        action = random.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        rows["reset"].append(fresh)
        rows["qpos"].append(data.qpos.copy())
        rows["qvel"].append(data.qvel.copy())
        observation, reward, terminated, truncated, _ = env.step(action)
        rows["action"].append(action)
        rows["observation"].append(observation)
        rows["reward"].append(reward)
        rows["terminated"].append(terminated)
        fresh = terminated or truncated
        if fresh:
            env.reset()
    return rows


def main():
    gymnasium.logger.min_level = 50
    with h5py.File(sys.argv[1], "w") as out:
        for name, (env_id, options) in TASKS.items():
            env = gymnasium.make(env_id, **options)
            group = out.create_group(name)
            for key, values in record(env, seed=7).items():
                array = np.asarray(values)
                group[key] = array.astype({"b": np.uint8, "f": array.dtype}[array.dtype.kind])


if __name__ == "__main__":
    main()
