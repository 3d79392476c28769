# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The pwdice authors
"""report.md, report.html and curves-<task>-<group>.svg from the run directories of reproduce_runs.py.

    result of a run   mean normalised score of its last three evaluations: policies swing from one to the next
    of a method       mean over seeds +- standard error of that mean (none with a single seed)
    1 M dual steps    preparation as it was + 1,000,000 / (dual steps per second, evaluation left out): extrapolated
"""
import csv
import html
import json
import math
import os
import subprocess

LAST = 3
# Returns of a random and of an expert policy that count as 0 and 100 (D4RL's references).
REFERENCE = {"hopper": (-20.272305, 3234.3), "halfcheetah": (-280.178953, 12135.0), "walker2d": (1.629008, 4592.3),
             "ant": (-325.6, 3879.7), "ant111": (-325.6, 3879.7)}
TITLE = {"pwdice": "PW-DICE", "paper": "PW-DICE, paper", "code": "PW-DICE, code", "smodice-kl": "SMODICE-KL",
         "smodice-chi2": "SMODICE-χ²", "bc": "BC", "cost-none": "cost: R alone", "cost-cosine": "cost: cosine",
         "cost-squared-euclidean": "cost: squared Euclidean"}
COLOUR = {"pwdice": "#0057b8", "paper": "#56b4e9", "code": "#8a63d2", "smodice-kl": "#d55e00", "smodice-chi2": "#e69f00",
          "bc": "#6b6b6b", "cost-none": "#b8336a", "cost-cosine": "#009e73", "cost-squared-euclidean": "#a07800"}
GROUPS = {"methods": ("pwdice", "paper", "code", "smodice-kl", "smodice-chi2", "bc"),
          "costs": ("pwdice", "cost-none", "cost-cosine", "cost-squared-euclidean")}


class Run:
    """metrics.csv of one run."""

    def __init__(self, directory):
        self.directory = directory
        self.rows = []  # (phase, step, seconds, name, value)
        path = os.path.join(directory, "metrics.csv")
        if os.path.exists(path):
            with open(path, newline="") as file:
                for row in csv.DictReader(file):
                    try:
                        self.rows.append((row["phase"], int(row["step"]), float(row["seconds"]), row["name"], float(row["value"])))
                    except (TypeError, ValueError):
                        pass  # a line cut short by a crash; the resumed run writes it again
        self.finished = os.path.exists(os.path.join(directory, "diagnostics.json"))

    def series(self, phase, name):
        return [(step, value) for p, step, _, n, value in self.rows if p == phase and n == name]

    def score(self):
        last = [value for _, value in self.series("evaluation", "score")][-LAST:]
        return sum(last) / len(last) if last else math.nan

    def expert_share(self):
        shares = [value for _, value in self.series("dual", "weights_expert_share")]
        return shares[-1] if shares else math.nan

    def wall_clock(self):
        return max((seconds for _, _, seconds, _, _ in self.rows), default=math.nan)

    def phases(self):
        """phase -> (steps, seconds without evaluations)."""
        out, begin, evaluating = {}, 0.0, 0.0
        for phase in ("contrastive", "discriminator", "dual"):
            at = {step: seconds for p, step, seconds, name, _ in self.rows if p == phase and name == "loss"}
            if not at:
                continue
            if phase == "dual":  # an evaluation begins where the row of the same step was written
                ends = {step: seconds for p, step, seconds, name, _ in self.rows if p == "evaluation" and name == "score"}
                evaluating = sum(ends[step] - at[step] for step in ends if step in at and step != max(at))
            last = max(at)
            out[phase] = (last, max(1e-9, at[last] - begin - evaluating))
            begin = at[last]
        return out

    def extrapolated(self, steps=1_000_000):
        phases = self.phases()
        if "dual" not in phases:
            return math.nan
        done, seconds = phases["dual"]
        return sum(s for name, (_, s) in phases.items() if name != "dual") + steps * seconds / done


def mean(values):
    values = [v for v in values if not math.isnan(v)]
    return sum(values) / len(values) if values else math.nan


def standard_error(values):
    if len(values) < 2:
        return math.nan
    centre = mean(values)
    return math.sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1) / len(values))


def number(value, pattern="{:.1f}"):
    return "–" if math.isnan(value) else pattern.format(value)


def plus_minus(values):
    error = standard_error(values)
    return number(mean(values)) + ("" if math.isnan(error) else f" ± {error:.1f}")


def duration(seconds):
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def expert_score(program, data, task):
    """Of all trajectories in the expert's file, NaN when it cannot be read."""
    done = subprocess.run([program, "data", "info", os.path.join(data, f"{task}_expert.hdf5"), "--json"],
                          capture_output=True, text=True)
    try:
        value = json.loads(done.stdout)[0]["return"]["mean"]
    except (ValueError, KeyError, IndexError):
        return math.nan
    low, high = REFERENCE[task]
    return 100 * (value - low) / (high - low)


# Curves: SVG without a library. ---------------------------------------------------------------------------------------

def ticks(low, high, count):
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9) / count))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= count)
    return [step * k for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def band(runs):
    """(step, mean, least, greatest) of the score over the seeds that have that evaluation."""
    by_step = {}
    for run in runs:
        for step, value in run.series("evaluation", "score"):
            by_step.setdefault(step, []).append(value)
    return [(step, mean(v), min(v), max(v)) for step, v in sorted(by_step.items())]


def curves(title, methods, expert):
    """methods: name -> runs. A line is the mean over seeds, its shade reaches from the worst to the best seed."""
    bands = {name: band(runs) for name, runs in methods.items()}
    bands = {name: points for name, points in bands.items() if points}
    if not bands:
        return ""
    width, height, left, right, top, bottom = 760, 380, 62, 200, 44, 52
    most = max(points[-1][0] for points in bands.values())
    values = [v for points in bands.values() for p in points for v in p[2:]] + ([] if math.isnan(expert) else [expert])
    low, high = min(0.0, min(values)), max(10.0, max(values)) * 1.05
    x = lambda step: left + (width - left - right) * step / most
    y = lambda value: height - bottom - (height - top - bottom) * (value - low) / (high - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="system-ui, sans-serif" font-size="12" fill="#222">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="24" font-size="15" font-weight="600">{html.escape(title)}</text>']
    for value in ticks(low, high, 8):
        out.append(f'<path d="M{left} {y(value):.1f}H{width - right}" stroke="#e4e4e4"/>'
                   f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in ticks(0, most, 6):
        out.append(f'<path d="M{x(value):.1f} {height - bottom}v5" stroke="#888"/>'
                   f'<text x="{x(value):.1f}" y="{height - bottom + 19}" text-anchor="middle">{value:,.0f}</text>')
    out.append(f'<path d="M{left} {top}V{height - bottom}H{width - right}" fill="none" stroke="#888"/>'
               f'<text x="{(left + width - right) / 2}" y="{height - 12}" text-anchor="middle">dual steps</text>'
               f'<text transform="translate(16 {(top + height - bottom) / 2}) rotate(-90)" text-anchor="middle">normalised score</text>')
    for name, points in bands.items():
        there = " ".join(f"{x(p[0]):.1f},{y(p[3]):.1f}" for p in points)
        back = " ".join(f"{x(p[0]):.1f},{y(p[2]):.1f}" for p in reversed(points))
        out.append(f'<polygon points="{there} {back}" fill="{COLOUR[name]}" opacity="0.13"/>')
    for name, points in bands.items():
        line = " ".join(f"{x(p[0]):.1f},{y(p[1]):.1f}" for p in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{COLOUR[name]}" stroke-width="2" stroke-linejoin="round"/>')
        out.append(f'<circle cx="{x(points[-1][0]):.1f}" cy="{y(points[-1][1]):.1f}" r="3" fill="{COLOUR[name]}"/>')
    if not math.isnan(expert):
        out.append(f'<path d="M{left} {y(expert):.1f}H{width - right}" stroke="#111" stroke-dasharray="5 4"/>')
    legend = [(f'stroke="{COLOUR[name]}" stroke-width="3"', TITLE[name]) for name in bands]
    legend += [] if math.isnan(expert) else [('stroke="#111" stroke-dasharray="5 4"', "expert's data")]
    for k, (style, text) in enumerate(legend):
        at = top + 12 + 21 * k
        out.append(f'<path d="M{width - right + 16} {at}h22" {style}/><text x="{width - right + 46}" y="{at + 4}">{html.escape(text)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


# The report as a list of blocks, which Markdown and HTML render alike. -------------------------------------------------

def result_table(methods, expert):
    rows = [["method", "score", "% of expert", "by seed", "weight on expert transitions"]]
    for name, runs in methods.items():
        scores = [run.score() for run in runs if run.finished]
        if scores:
            rows.append([TITLE[name], plus_minus(scores), number(100 * mean(scores) / expert if expert > 0 else math.nan, "{:.0f} %"),
                         ", ".join(number(s) for s in scores),
                         number(100 * mean([run.expert_share() for run in runs if run.finished]), "{:.0f} %")])
    rows.append(["expert's data", number(expert), "", "", ""])
    return rows


def verdicts(methods, expert):
    """The two expectations of the comparison, where the runs for them are there."""
    scores = {name: [run.score() for run in runs if run.finished] for name, runs in methods.items()}
    ours, kl, out = scores.get("pwdice", []), scores.get("smodice-kl", []), []
    if ours and expert > 0:
        out.append(f"PW-DICE reaches {100 * mean(ours) / expert:.0f} % of the expert's score "
                   f"({'at least' if mean(ours) >= 0.9 * expert else 'below'} 90 %).")
    if ours and kl:
        error = math.hypot(*(0 if math.isnan(e) else e for e in (standard_error(ours), standard_error(kl))))
        word = "above" if mean(ours) > mean(kl) + error else "within one standard error of" if mean(ours) >= mean(kl) - error else "below"
        out.append(f"PW-DICE is {word} SMODICE-KL ({mean(ours):.1f} and {mean(kl):.1f}).")
    return out


def speed_table(methods):
    rows = [["method", "contrastive steps/s", "discriminator steps/s", "dual steps/s (with policy steps)", "wall clock of a run",
             "1 M dual steps, extrapolated"]]
    for name, runs in methods.items():
        runs = [run for run in runs if run.finished]
        if not runs:
            continue
        phases = [run.phases() for run in runs]
        rate = lambda phase: max([p[phase][0] / p[phase][1] for p in phases if phase in p], default=math.nan)
        rows.append([TITLE[name], *(number(rate(p)) for p in ("contrastive", "discriminator", "dual")),
                     duration(min(run.wall_clock() for run in runs)), duration(min(run.extrapolated() for run in runs))])
    return rows


def machine(runs):
    for run in runs:
        path = os.path.join(run.directory, "environment.json")
        if os.path.exists(path):
            report = json.load(open(path))
            return f"{report['cpu']}, {report['cores']} cores, {report['simd']}; {report['threads']} thread per run; pwdice {report['pwdice']}"
    return "unknown"


def markdown(blocks):
    out = []
    for kind, content in blocks:
        if kind in ("h1", "h2"):
            out.append(("# " if kind == "h1" else "## ") + content)
        elif kind == "p":
            out.append(content)
        elif kind == "table":
            lines = ["| " + " | ".join(row) + " |" for row in content]
            out.append("\n".join([lines[0], "|" + " --- |" * len(content[0]), *lines[1:]]))
        elif kind == "figure":
            out.append(f"![{content[0]}]({content[1]})")
        elif kind == "code":
            out.append(f"```\n{content}\n```")
    return "\n\n".join(out) + "\n"


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.3rem .8rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}th{border-bottom:2px solid #999}pre{background:#f5f5f5;padding:.8rem;overflow-x:auto;
font-size:12px}svg{max-width:100%;height:auto}"""


def page(blocks):
    out = ["<!doctype html><html lang=en><meta charset=utf-8><title>pwdice: MuJoCo comparison</title>", f"<style>{STYLE}</style>"]
    for kind, content in blocks:
        if kind == "table":
            cells = lambda row, tag: "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row) + "</tr>"
            out.append("<table>" + cells(content[0], "th") + "".join(cells(row, "td") for row in content[1:]) + "</table>")
        elif kind == "figure":
            out.append(content[2])
        else:
            out.append(f"<{kind}>{html.escape(content)}</{kind}>" if kind != "code" else f"<pre>{html.escape(content)}</pre>")
    return "\n".join(out) + "</html>\n"


def write(out, entries, data, command_line, program):
    """entries: ((task, method, seed), directory, training command). Returns the paths of both reports."""
    tasks = {}
    for (task, method, _), directory, _ in entries:
        tasks.setdefault(task, {}).setdefault(method, []).append(Run(directory))
    every = [run for methods in tasks.values() for runs in methods.values() for run in runs]
    done, steps = sum(run.finished for run in every), max((s for r in every for s, _ in r.series("evaluation", "score")), default=0)
    blocks = [("h1", "PW-DICE beside SMODICE, BC and its own cost ablations on MuJoCo"),
              ("p", f"{done} of {len(every)} runs finished, {steps:,} dual steps each. A run's result is the mean normalised score of its last "
                    f"{LAST} evaluations; ± is the standard error over seeds. E is one full-length expert trajectory, states alone; I is the "
                    "expert file's other trajectories and everything in the random file."),
              ("code", command_line), ("p", f"Machine: {machine(every)}.")]
    for task, methods in tasks.items():
        expert = expert_score(program, data, task)
        blocks += [("h2", task), ("table", result_table(methods, expert)), *(("p", text) for text in verdicts(methods, expert))]
        for group, names in GROUPS.items():
            picture = curves(f"{task}: {group}", {n: methods[n] for n in names if n in methods}, expert)
            if picture and (group == "methods" or any(n in methods for n in names[1:])):
                name = f"curves-{task}-{group}.svg"
                open(os.path.join(out, name), "w").write(picture)
                blocks.append(("figure", (f"{task}: score against dual steps, {group}; mean over seeds, shaded from worst to best", name, picture)))
        blocks.append(("table", speed_table(methods)))
    blocks += [("p", "Speeds are those of the fastest seed, since other work shares the machine; steps per second leave evaluations "
                     "out. The last column is extrapolated, not measured: the preparation as it was, and a million dual steps with their policy steps at the measured rate."),
               ("h2", "Commands"), ("code", "\n".join(command for _, _, command in entries))]
    paths = [os.path.join(out, name) for name in ("report.md", "report.html")]
    for path, text in zip(paths, (markdown(blocks), page(blocks))):
        open(path, "w").write(text)
    return paths
