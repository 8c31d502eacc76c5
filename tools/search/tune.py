"""Chooses the numbers of `Settings` on the training third of the queries: one at a time, what helps is kept.

    cargo build --release --example search_eval
    python tune.py ../../target/release/examples/search_eval FOLDER [KEY=NUMBER …]

The keys are those of `search_eval --set`. What is sought is nDCG@5, half of that of the four MCP sets, and a fifth of R@5.
"""

import subprocess
import sys

START = {
    "f0": 0.7, "f1": 3, "f2": 1, "f3": 0.9, "f4": 0.25, "f5": 0.6, "f6": 0, "length": 0.75, "saturation": 1.8, "synonyms": 1,
    "neighbours": 1, "joined": 1.3, "split": 0.5, "prefix": 0.5, "typo": 0.6, "name_coverage": 0.25, "query_coverage": 0.5,
    "clues": 1, "meaning": 0.2, "says": 1,
}  # fmt: skip
# A smaller gain is chance.
LEAST = 0.0004


def value(program, folder, numbers):
    pairs = ",".join(f"{key}={number:g}" for key, number in numbers.items())
    run = [program, folder, "--split", "train", "--only", "ours", "--set", pairs]
    last = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    _, r5, _, ndcg, _, _, mcp_ndcg = map(float, last.split("|")[2:9])
    return ndcg + 0.5 * mcp_ndcg + 0.2 * r5


def main():
    program, folder, *given = sys.argv[1:]
    numbers = START | {key: float(number) for key, number in (pair.split("=") for pair in given)}
    best = value(program, folder, numbers)
    for _ in range(2):
        for key, now in list(numbers.items()):
            for other in ([now * 0.6, now * 1.5] if now else [0.1, 0.3]):
                tried = numbers | {key: round(other, 3)}
                if (reached := value(program, folder, tried)) > best + LEAST:
                    best, numbers = reached, tried
                    print(key, numbers[key], round(best, 4), flush=True)
    print(numbers)


if __name__ == "__main__":
    main()
