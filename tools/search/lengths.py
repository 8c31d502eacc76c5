"""Counts how many words each field of public tools has on average: what `AVERAGE_LENGTHS` of `fields.rs` is rounded from.

    python lengths.py FOLDER/mcp_mix/tools.jsonl
"""

import collections
import sys

from vectors import read
from words import toks

FIELDS = ["server", "name", "description", "parameter names", "their descriptions", "values", "the server's description"]


def parameters(schema, depth=6):
    if not isinstance(schema, dict) or depth == 0:
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else []:
        yield 3, name
        if isinstance(inner, dict):
            yield 4, inner.get("description")
            yield from parameters(inner, depth - 1)
    values = schema.get("enum")
    yield from ((5, value) for value in [*(values if isinstance(values, list) else []), schema.get("const")])
    yield from parameters(schema.get("items"), depth - 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for inner in schema[key] if isinstance(schema.get(key), list) else []:
            yield from parameters(inner, depth - 1)


def main():
    total, tools = collections.Counter(), 0
    for tool in read(sys.argv[1:]):
        tools += 1
        said = [(0, tool["server"]), (0, tool.get("server_title")), (1, tool["name"]), (2, tool.get("description"))]
        for field, text in [*said, *parameters(tool.get("input_schema")), (6, tool.get("server_description"))]:
            if isinstance(text, str):
                total[field] += len(toks(text[:4000]))
    for field, name in enumerate(FIELDS):
        print(f"{total[field] / tools:.1f} {name}")


if __name__ == "__main__":
    main()
