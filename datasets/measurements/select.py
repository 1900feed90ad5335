#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Selects the measured cases of this folder from the reference tables.

    SEXTANT_REFERENCE_DIR=... python3 datasets/measurements/select.py

Deterministic: rows are grouped into strata, sorted by size and id within each, and every k-th is
kept, the first and the last included, k such that a table meets its budget. Strata get rows in
proportion to the square root of their size, so that a large table does not drown a small one.
All rows that published_cases() names are kept.
"""
import csv
import math
import os
import sys

BUDGETS = {"operators": 3200, "collectives": 860, "training": 1400, "inference": 590}


def number(text):
    try:
        return float(text)
    except ValueError:
        return 0.0


STRATA = {
    "operators": ("suite", "accelerator", "software", "family", "op", "dtype"),
    "collectives": ("suite", "accelerator", "software", "collective", "gpus", "nodes"),
    "training": ("suite", "accelerator", "framework", "status", "role", "model"),
    "inference": ("suite", "accelerator", "framework", "model", "tp"),
}


def size(kind, row):
    if kind == "operators":
        return number(row["latency_us"])
    if kind == "collectives":
        return number(row["bytes"])
    if kind == "training":
        return number(row["gpus"])
    return number(row["batch_or_concurrency"]) * 1e6 + number(row["input_len"])


def published(kind, row):
    """The cases of the README's table."""
    if row["quality"]:
        return False
    if kind == "training":
        return row["suite"] == "korthikanti-2022" or clean_sweep(row)
    if kind == "inference":
        splitwise = row["suite"] == "splitwise" and not row["accelerator"].endswith("power-capped")
        return splitwise or row["suite"] == "fastertransformer"
    return False


def clean_sweep(row):
    return (row["suite"] == "hf-h100-sweep" and not row["quality"] and number(row["tp"]) <= 8
            and row["status"] == "ok")


def kept_whole(kind, row):
    """Tables measured between nodes of a stated fabric: few rows, each of another regime."""
    return (kind == "collectives" and row["nodes"] not in ("", "1") and row["fabric_stated"] == "1"
            and row["suite"] != "vidur" and useful(kind, row))


def useful(kind, row):
    """Rows of the tables that can be compared at all."""
    if row["quality"]:
        return False
    if kind == "collectives":
        return bool(row["bytes"] and row["time_us"] and row["accelerator"])
    return True


def take(rows, count):
    if count >= len(rows):
        return rows
    if count == 1:
        return [rows[len(rows) // 2]]
    step = (len(rows) - 1) / (count - 1)
    return [rows[round(i * step)] for i in range(count)]


def select(kind, rows):
    kept = [r for r in rows if published(kind, r) or kept_whole(kind, r)]
    budget = BUDGETS[kind] - len(kept)
    strata = {}
    for row in rows:
        if useful(kind, row) and not published(kind, row) and not kept_whole(kind, row):
            strata.setdefault(tuple(row[c] for c in STRATA[kind]), []).append(row)
    for group in strata.values():
        group.sort(key=lambda r: (size(kind, r), r["id"]))
    # The share of each stratum by bisection on the factor of the square root.
    low, high = 0.0, 1e4
    for _ in range(60):
        factor = (low + high) / 2
        total = sum(min(len(g), math.ceil(factor * math.sqrt(len(g)))) for g in strata.values())
        if total > budget:
            high = factor
        else:
            low = factor
    for group in strata.values():
        kept += take(group, max(1, math.ceil(low * math.sqrt(len(group)))))
    order = {r["id"]: i for i, r in enumerate(rows)}
    return sorted(kept, key=lambda r: order[r["id"]])


def main():
    reference = os.environ.get("SEXTANT_REFERENCE_DIR")
    if not reference:
        sys.exit("set SEXTANT_REFERENCE_DIR to the folder that has measurements/")
    here = os.path.dirname(os.path.abspath(__file__))
    cases = []
    sources = {}
    for kind in BUDGETS:
        with open(os.path.join(reference, "measurements", kind + ".csv"), newline="",
                  encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
        chosen = select(kind, rows)
        with open(os.path.join(here, kind + ".csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, reader.fieldnames, lineterminator="\n")
            writer.writeheader()
            writer.writerows(chosen)
        for row in chosen:
            origin = row["source"].split(":")[0].split("@")[0].strip()
            key = (row["suite"], origin)
            sources.setdefault(key, {}).setdefault(kind, 0)
            sources[key][kind] += 1
            if published(kind, row):
                cases.append((row["suite"], row["id"]))
    with open(os.path.join(here, "published_cases.csv"), "w", encoding="utf-8") as file:
        file.write("suite,id\n")
        for suite, identity in sorted(cases):
            file.write(f"{suite},{identity}\n")
    with open(os.path.join(here, "SOURCES.md"), "w", encoding="utf-8") as file:
        file.write(
            "# Sources of the measured cases\n\n"
            "Facts (settings and measured numbers) transcribed into our own columns; no text and no "
            "code was copied.\nThe `source` column of every row names the repository and revision, "
            "or the page or paper, it came from.\nLicences are those of the source; where the "
            "column below says \"see source\", read it there before you copy\nmore than facts.\n\n"
            "| suite | source | licence | rows |\n|---|---|---|---|\n")
        for (suite, origin), counts in sorted(sources.items()):
            text = ", ".join(f"{n} {kind}" for kind, n in counts.items())
            licence = LICENCES.get(origin, "see source")
            file.write(f"| {suite} | {origin.replace('|', '/')} | {licence} | {text} |\n")


# Licences of repositories as we know them; the repository itself decides.
LICENCES = {
    "ai-dynamo/aiconfigurator": "Apache-2.0",
    "microsoft/vidur": "MIT",
    "mlcommons/training_results_v4.0": "Apache-2.0",
    "mosaicml/llm-foundry": "Apache-2.0",
    "NVIDIA/JAX-Toolbox": "Apache-2.0",
    "NVIDIA/NeMo": "Apache-2.0",
    "NVIDIA-NeMo/Automodel": "Apache-2.0",
    "NVIDIA-NeMo/Megatron-Bridge": "Apache-2.0",
    "InternLM/lmdeploy": "Apache-2.0",
    "calculon-ai/calculon": "Apache-2.0",
    "Mutinifni/splitwise-sim": "MIT",
    "pytorch/torchtitan": "BSD-3-Clause",
    "cli99/llm-analysis": "Apache-2.0",
}

if __name__ == "__main__":
    main()
