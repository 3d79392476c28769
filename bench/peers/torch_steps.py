# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""One training step in PyTorch: torch_steps.py STEP SIZE eager|compile THREADS."""
import math

from problem import BETA, EPS, GAMMA, LEARNING_RATE, PENALTY, POOL, arguments, measure, problem

step, size, mode, threads = arguments()

import torch  # noqa: E402  after the environment is set
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(threads)
weights, pools = problem(step, size)
pools = {k: [torch.as_tensor(x, dtype=torch.float32) for x in v] for k, v in pools.items()}


def linear(w, b):
    layer = nn.Linear(*w.shape)
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(w.T))
        layer.bias.copy_(torch.as_tensor(b))
    return layer


def mlp(spec, activation, activate_last=False):
    modules = []
    for i, layer in enumerate(spec):
        modules.append(linear(*layer))
        if activate_last or i + 1 < len(spec):
            modules.append(activation())
    return nn.Sequential(*modules)


def discriminator():
    net = mlp(weights["net"], nn.Tanh)

    def input_gradient(x):
        if mode == "compile":
            return torch.func.grad(lambda v: net(v).sum())(x)
        x.requires_grad_(True)
        return torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]

    def loss(expert, offline, mix):
        bce = F.softplus(-net(expert)).mean() + F.softplus(net(offline)).mean()
        g = input_gradient(mix * expert + (1 - mix) * offline)
        return bce + PENALTY * (g.norm(dim=1) - 1).square().mean()

    return loss, list(net.parameters())


def bc():
    trunk = mlp(weights["trunk"], nn.ReLU, activate_last=True)
    mean, logvar = linear(*weights["mean"][0]), linear(*weights["logvar"][0])

    def loss(s, a, w):
        h = trunk(s)
        mu, lv = mean(h), 7 * torch.tanh(logvar(h)) - 3
        x = torch.atanh(a.clamp(-1 + 1e-6, 1 - 1e-6))
        nll = 0.5 * (math.log(2 * math.pi) + lv + (x - mu).square() * torch.exp(-lv)) + torch.log(1 - a.square() + 1e-10)
        return (w * nll.sum(1)).mean()

    return loss, [*trunk.parameters(), *mean.parameters(), *logvar.parameters()]


def infonce():
    encoder = mlp(weights["encoder"], nn.ReLU)
    w0 = nn.Parameter(torch.as_tensor(weights["w0"], dtype=torch.float32))
    own = torch.arange(pools["s"][0].shape[0])

    def loss(s, s_next):
        z1, z2 = (F.normalize(encoder(x), dim=1, eps=0) for x in (s, s_next))
        factor = F.softplus(w0)
        return F.cross_entropy((z1 @ (factor @ factor.T)) @ z2.T, own)

    return loss, [*encoder.parameters(), w0]


def dual():
    trunk = mlp(weights["trunk"], nn.ReLU, activate_last=True)
    heads = nn.ModuleList(linear(*h) for h in weights["heads"])

    def head(k, x):
        return heads[k](trunk(x))

    def loss(pair, expert, s, s_next, initial, expert_linear, alive, z, z_expert, reward):
        l1, l2 = head(1, pair), head(2, expert)
        if step == "dual_paired":
            potential = l1 + l2 - (BETA * (z - z_expert).square().sum(1, keepdim=True) - reward)
        else:
            squares = z.square().sum(1, keepdim=True) + z_expert.square().sum(1) - 2 * (z @ z_expert.T)
            potential = l1 + l2.T - (BETA * squares - reward)
        transport = EPS * (torch.logsumexp((potential / EPS).flatten(), 0) - math.log(potential.numel()))
        h = trunk(s)
        flow = (heads[0](h) - GAMMA * alive * head(0, s_next) - heads[1](h)) / EPS
        bellman = EPS * (torch.logsumexp(flow.flatten(), 0) - math.log(flow.numel()))
        return transport + bellman - (1 - GAMMA) * head(0, initial).mean() - head(2, expert_linear).mean()

    return loss, [*trunk.parameters(), *heads.parameters()]


loss_of, parameters = {"discriminator": discriminator, "bc": bc, "infonce": infonce}.get(step, dual)()
if mode == "compile":
    loss_of = torch.compile(loss_of, fullgraph=True, dynamic=False)
adam = torch.optim.Adam(parameters, lr=LEARNING_RATE[step], **({"fused": True} if mode == "compile" else {}))


def run(i):
    loss = loss_of(*(v[i % POOL] for v in pools.values()))
    adam.zero_grad()
    loss.backward()
    if step == "infonce":
        nn.utils.clip_grad_norm_(parameters, 1.0)
    adam.step()
    return loss.detach()


measure(run, f"torch {torch.__version__} {mode}")
