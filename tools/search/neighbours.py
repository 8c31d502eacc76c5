"""Finds near words for those that `neighbours.tsv` has not: by what a sentence model makes of single words. No query is read.

    python neighbours.py near_stems.tsv --tools FOLDER/*/tools.jsonl FOLDER/toucan_pool.tools.jsonl.gz

Packages and teacher are those of `vectors.py`. Words are its tokenizer's and the common ones of the tools; words of one stem
count as one. What is near must be a word that tools say. A line is a stem and up to five near ones, each with the cosine.
"""

import argparse
import collections

import numpy as np

from vectors import Teacher, alone, read, texts
from words import toks

MOST = 5
FLOOR = 0.6
# A word that fewer tools say is a name or a slip.
TOOLS = 2
BATCH = 500


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--tools", nargs="+", required=True)
    options = parser.parse_args()
    said = collections.Counter()
    for tool in read(options.tools):
        said.update(set(toks(tool["name"] + " " + (tool.get("description") or ""))))
    teacher = Teacher()
    words = alone(teacher, texts(options.tools)[2])
    sums = {}
    for word, vector in zip(words, teacher(words)):
        stems = toks(word)
        if len(stems) == 1:
            sums[stems[0]] = sums.get(stems[0], 0) + vector
    stems = sorted(sums)
    vectors = np.array([sums[stem] / np.linalg.norm(sums[stem]) for stem in stems])
    targets = [place for place, stem in enumerate(stems) if said[stem] >= TOOLS]
    with open(options.out, "w", encoding="utf-8") as file:
        for place, stem in enumerate(stems):
            if place % BATCH == 0:
                batch = vectors[place : place + BATCH] @ vectors[targets].T
            cosines = batch[place % BATCH]
            best = np.argpartition(-cosines, MOST + 1)[: MOST + 1]
            best = sorted(best, key=lambda at: (-round(float(cosines[at]), 4), stems[targets[at]]))
            best = [at for at in best if stems[targets[at]] != stem]
            near = [f"{stems[targets[at]]}:{cosines[at]:.2f}" for at in best[:MOST] if round(float(cosines[at]), 2) >= FLOOR]
            if near:
                file.write(f"{stem}\t{' '.join(near)}\n")


if __name__ == "__main__":
    main()
