# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""One training step in JAX, a single jit-compiled function with donated state: jax_steps.py STEP SIZE jit THREADS."""
import math

from problem import BETA, EPS, GAMMA, LEARNING_RATE, PENALTY, POOL, arguments, measure, problem

step, size, _, _ = arguments()

import jax  # noqa: E402  after the environment is set
import jax.numpy as jnp  # noqa: E402

weights, pools = problem(step, size)
weights = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), weights)
batches = [tuple(jnp.asarray(v[i], jnp.float32) for v in pools.values()) for i in range(POOL)]


def mlp(layers, x, activation, activate_last=False):
    for i, (w, b) in enumerate(layers):
        x = x @ w + b
        if activate_last or i + 1 < len(layers):
            x = activation(x)
    return x


def discriminator(p, expert, offline, mix):
    net = lambda x: mlp(p["net"], x, jnp.tanh)
    bce = jax.nn.softplus(-net(expert)).mean() + jax.nn.softplus(net(offline)).mean()
    g = jax.grad(lambda x: net(x).sum())(mix * expert + (1 - mix) * offline)
    return bce + PENALTY * jnp.square(jnp.linalg.norm(g, axis=1) - 1).mean()


def bc(p, s, a, w):
    h = mlp(p["trunk"], s, jax.nn.relu, activate_last=True)
    mu, lv = mlp(p["mean"], h, None), 7 * jnp.tanh(mlp(p["logvar"], h, None)) - 3
    x = jnp.arctanh(jnp.clip(a, -1 + 1e-6, 1 - 1e-6))
    nll = 0.5 * (math.log(2 * math.pi) + lv + jnp.square(x - mu) * jnp.exp(-lv)) + jnp.log(1 - a * a + 1e-10)
    return (w * nll.sum(1)).mean()


def infonce(p, s, s_next):
    unit = lambda v: v / jnp.linalg.norm(v, axis=1, keepdims=True)
    z1, z2 = (unit(mlp(p["encoder"], x, jax.nn.relu)) for x in (s, s_next))
    factor = jax.nn.softplus(p["w0"])
    scores = (z1 @ (factor @ factor.T)) @ z2.T
    return (jax.nn.logsumexp(scores, axis=1) - jnp.diagonal(scores)).mean()


def dual(p, pair, expert, s, s_next, initial, expert_linear, alive, z, z_expert, reward):
    trunk = lambda x: mlp(p["trunk"], x, jax.nn.relu, activate_last=True)
    head = lambda k, h: h @ p["heads"][k][0] + p["heads"][k][1]
    l1, l2 = head(1, trunk(pair)), head(2, trunk(expert))
    if step == "dual_paired":
        potential = l1 + l2 - (BETA * jnp.square(z - z_expert).sum(1, keepdims=True) - reward)
    else:
        squares = jnp.square(z).sum(1, keepdims=True) + jnp.square(z_expert).sum(1) - 2 * (z @ z_expert.T)
        potential = l1 + l2.T - (BETA * squares - reward)
    transport = EPS * (jax.nn.logsumexp(potential / EPS) - math.log(potential.size))
    h = trunk(s)
    flow = (head(0, h) - GAMMA * alive * head(0, trunk(s_next)) - head(1, h)) / EPS
    bellman = EPS * (jax.nn.logsumexp(flow) - math.log(flow.size))
    return (transport + bellman - (1 - GAMMA) * head(0, trunk(initial)).mean()
            - head(2, trunk(expert_linear)).mean())


loss_of = {"discriminator": discriminator, "bc": bc, "infonce": infonce}.get(step, dual)
RATE, BETA1, BETA2, TINY = LEARNING_RATE[step], 0.9, 0.999, 1e-8


def update(state, batch):
    p, m, v, t = state
    loss, g = jax.value_and_grad(loss_of)(p, *batch)
    if step == "infonce":
        norm = jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(g)))
        g = jax.tree.map(lambda x: x * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), g)
    t = t + 1
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, g)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, g)
    c1, c2 = 1 - BETA1 ** t, 1 - BETA2 ** t
    p = jax.tree.map(lambda p, m, v: p - RATE * (m / c1) / (jnp.sqrt(v / c2) + TINY), p, m, v)
    return (p, m, v, t), loss


update = jax.jit(update, donate_argnums=0)
zeros = lambda: jax.tree.map(jnp.zeros_like, weights)
state = (weights, zeros(), zeros(), jnp.zeros(()))


def run(i):
    global state
    state, loss = update(state, batches[i % POOL])
    jax.block_until_ready(state)
    return loss


measure(run, f"jax {jax.__version__}")
