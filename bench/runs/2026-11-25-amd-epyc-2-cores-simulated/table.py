#!/usr/bin/env python3
"""Simulated over measured: table.py STATE LOW HIGH MEASURED.json.. -- SIMULATED.json..

A sample of two workers counts if a hand-over took LOW to HIGH ns before and after it."""
import json, statistics, sys

state, low, high = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
split = sys.argv.index("--")
measured, simulated = sys.argv[4:split], sys.argv[split + 1:]
NAMES = {"thief": "thief-1", "steals": "steals-1"}
real = {}
for path in measured:
    for row in json.load(open(path))["rows"]:
        key = (row["suite"], row["workload"], row["system"], row["workers"])
        before = row["counter_samples"].get("hand_over_ns_before")
        after = row["counter_samples"].get("hand_over_ns_after")
        for at, sample in enumerate(row["samples"]):
            if row["workers"] > 1 and not (before and after and all(low <= s[at] <= high for s in (before, after))):
                continue
            real.setdefault(key, []).append(sample)
sim = {}
for path in simulated:
    for row in json.load(open(path))["rows"]:
        sim[(NAMES.get(row["workload"], row["workload"]), row["system"], row["workers"])] = (row["median"], row["unit"])
groups = {}
for (suite, workload, system, workers), samples in real.items():
    found = sim.get((workload, system, workers))
    if found is None or len(samples) < 3 or found[0] == 0 or statistics.median(samples) == 0:
        continue
    value = statistics.median(samples)
    # Above 1: the simulation is slower.
    ratio = found[0] / value if found[1] != "M/s" else value / found[0]
    groups.setdefault((suite, workload, workers), []).append((system, len(samples), value, found[0], ratio, found[1]))
every = []
for (suite, workload, workers), rows in groups.items():
    print(f"\n{suite} {workload}, {workers} workers ({rows[0][5]}), {state}")
    for system, count, value, simulated_, ratio, _ in rows:
        print(f"  {system:18} {count:4} {value:10.4g} {simulated_:10.4g}  {ratio:5.2f}")
    ratios = sorted(row[4] for row in rows)
    every += ratios
    by = lambda at: [row[0] for row in sorted(rows, key=lambda row: row[at])]
    a, b = by(2), by(3)
    pairs = [(x, y) for i, x in enumerate(a) for y in a[i + 1:]]
    same = sum(b.index(x) < b.index(y) for x, y in pairs)
    print(f"  median {statistics.median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}; {same} of {len(pairs)} pairs in the same order")
if every:
    every.sort()
    off = sum(not 1 / 1.5 <= r <= 1.5 for r in every)
    print(f"\nall {len(every)} rows: median {statistics.median(every):.2f}, {every[0]:.2f} to {every[-1]:.2f}; {off} off by more than 1.5")
