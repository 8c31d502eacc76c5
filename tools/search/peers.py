"""Measures FastMCP's own search and sentence embeddings on the folders that `examples/search_eval.rs` reads, on each third of the
queries, by the same figures.

    pip install -r requirements.txt fastmcp==4.2.3
    python peers.py FOLDER …

FastMCP gets what its search reads of a tool: the name with its server's before it, the description, and the parameters with
theirs. The embeddings are all-MiniLM-L6-v2's (see `vectors.py`) of the name and the description, by cosine.
"""

import collections
import json
import math
import pathlib
import re
import sys
import types

import numpy as np

from vectors import Teacher

DEPTH = 20
MCP = ["mcp_mix searches", "mcp_mix tasks", "probe300", "mcpproxy_golden"]
THIRDS = ["train", "dev", "test"]


def third(query):
    value = 0xCBF29CE484222325
    for byte in query.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return (value >> 32) % 3


def lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


def fastmcp(tools, queries):
    from fastmcp.server.transforms.search.base import _extract_searchable_text
    from fastmcp.server.transforms.search.bm25 import _BM25Index

    def text(tool):
        name = f"{tool['server']}_{tool['name']}"
        return _extract_searchable_text(
            types.SimpleNamespace(name=name, description=tool.get("description"), parameters=tool.get("input_schema"))
        )

    index = _BM25Index()
    index.build([text(tool) for tool in tools])
    return [index.query(query, DEPTH) for query in queries]


def minilm(tools, queries, teacher=[]):
    teacher = teacher or [Teacher()]
    said = [f"{re.sub('[^0-9A-Za-z]+', ' ', tool['name'])}: {tool.get('description') or ''}"[:600] for tool in tools]
    likeness = teacher[0](queries) @ teacher[0](said).T
    return np.argsort(-likeness, axis=1, kind="stable")[:, :DEPTH]


def figures(ids, query):
    relevance = {gold: query.get("rel", {}).get(gold, 1.0) for gold in query["gold"]}
    gain = lambda values: sum((2**value - 1) / math.log2(place + 2) for place, value in enumerate(values))
    found = lambda depth: sum(one in relevance for one in ids[:depth])
    best = gain(sorted(relevance.values(), reverse=True)[:5])
    ndcg = gain([relevance.get(one, 0.0) for one in ids[:5]]) / best
    return found(1), found(5) / len(relevance), ndcg, min(1, found(5))


def main():
    folders = [pathlib.Path(folder) for folder in sys.argv[1:]]
    folders = [inner for folder in folders for inner in [folder, *sorted(folder.iterdir())] if (inner / "queries.jsonl").exists()]
    for name, rank in (("FastMCP 4.2.3", fastmcp), ("all-MiniLM-L6-v2", minilm)):
        # For each third, and for all, the figures of each set's queries.
        by = collections.defaultdict(lambda: collections.defaultdict(list))
        for folder in folders:
            tools, queries = lines(folder / "tools.jsonl"), lines(folder / "queries.jsonl")
            kinds = {query.get("kind", "") == "task" for query in queries}
            for query, places in zip(queries, rank(tools, [query["query"] for query in queries])):
                nature = (" tasks" if query.get("kind") == "task" else " searches") if len(kinds) > 1 else ""
                measured = figures([tools[place]["id"] for place in places], query)
                for part in (THIRDS[third(query["query"])], "all"):
                    by[part][folder.name + nature].append(measured)
        for part in ("all", *THIRDS):
            means = {name: np.mean(measured, 0) for name, measured in by[part].items()}
            h1, r5, ndcg, _ = np.mean(list(means.values()), 0)
            row = f"| {name} | {part} | {h1:.3f} | {r5:.3f} | {ndcg:.3f} |"
            if all(mcp in means for mcp in MCP):
                mcp = np.mean([means[mcp] for mcp in MCP], 0)
                row += f" {mcp[3]:.3f} | {mcp[2]:.3f} |"
            print(row, flush=True)


if __name__ == "__main__":
    print("| ranker | queries | H@1 | R@5 | nDCG@5 | MCP4 H@5 | MCP4 nDCG@5 |\n|---|---|--:|--:|--:|--:|--:|")
    main()
