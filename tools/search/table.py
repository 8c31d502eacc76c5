"""Writes the word table that the search reads, from plain data.

    python table.py OUT --vectors VECTORS.npz --neighbours neighbours.tsv --near-stems near_stems.tsv \
        --synonyms synonyms.txt translations.txt

The layout is described in aster-runtime/src/search/table.rs. Keys are stems, as the search makes them of words. VECTORS may
also be an earlier table: its vectors are taken over, for when only near words change.
"""

import argparse
import struct
from collections import defaultdict

import numpy as np

from words import stem, stems_of

SYNONYM, NEIGHBOUR = 0, 1
MAX_NEAR = 12
# How many words of other languages a word may have besides.
MAX_FOREIGN = 24


def synonyms(path):
    """Lines of `word, word, …` (each stands for each), `word > word, …` (only from left to right), each with an
    optional weight at the end: `= 0.8`. A line `[tr]` says in which language the words on the left are from there on."""
    language, near, foreign = "english", defaultdict(dict), defaultdict(dict)
    for line in open(path, encoding="utf-8"):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if line.startswith("["):
            language = line.strip("[]")
            continue
        line, _, weight = line.partition("=")
        weight = float(weight) if weight.strip() else None
        left, arrow, right = line.partition(">")
        left = [word.strip() for word in left.split(",") if word.strip()]
        if arrow:
            targets = [word.strip() for word in right.split(",") if word.strip()]
            for word in left:
                for key in stems_of(word, language):
                    for target in targets:
                        for other in stems_of(target, "english"):
                            if other != key:
                                near[key][other] = max(near[key].get(other, 0), weight or 0.9)
                                if language != "english":
                                    foreign[other][key] = 0.8
        else:
            keys = [key for word in left for key in stems_of(word, language)]
            for key in keys:
                for other in keys:
                    if other != key:
                        near[key][other] = max(near[key].get(other, 0), weight or 0.3)
    return near, foreign


def neighbours(path, floor, stem):
    near = defaultdict(dict)
    for line in open(path, encoding="utf-8"):
        word, _, others = line.rstrip("\n").partition("\t")
        for other in others.split():
            other, _, cosine = other.rpartition(":")
            key, target = stem(word), stem(other)
            if key != target and float(cosine) >= floor:
                near[key][target] = max(near[key].get(target, 0), (float(cosine) - 0.5) / 0.5)
    return near


def says(length):
    """How much a word says of what a text is about, from the length of its vector beside the usual one: the teacher's texts
    are put in their places by the words that matter, and the others are learned to be short."""
    return min(1.0, max(0.3, length)) ** 0.5


def fnv1a(data):
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def vectors_of(path):
    """The words with their vectors: of vectors.py's file, or of an earlier table."""
    if path.endswith(".npz"):
        data = np.load(path)
        return data["words"].tolist(), data["E"]
    data = open(path, "rb").read()
    version, count, bits, dimensions, near = struct.unpack_from("<5I", data, 4)
    assert data[:4] == b"ASTW" and version == 2, path
    at = 24 + (2 << bits)
    starts = np.frombuffer(data, "<u4", count + 1, at)
    keys = at + 4 * (count + 1)
    words = [data[keys + start : keys + end].decode() for start, end in zip(starts, starts[1:])]
    norms = np.frombuffer(data, "<f4", count, keys + (int(starts[-1]) + 3) // 4 * 4 + 4 * (count + 1) + 4 * near)
    vectors = np.frombuffer(data, np.int8, count * dimensions, len(data) - count * dimensions)
    known = np.flatnonzero(norms)
    return [words[at] for at in known], norms[known, None] * vectors.reshape(count, dimensions)[known]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--vectors")
    parser.add_argument("--neighbours")
    parser.add_argument("--near-stems")
    parser.add_argument("--synonyms", nargs="*", default=[])
    parser.add_argument("--floor", type=float, default=0.6)
    options = parser.parse_args()
    near, english = defaultdict(dict), set()
    if options.neighbours:
        found = neighbours(options.neighbours, options.floor, stem)
        if options.near_stems:
            found = neighbours(options.near_stems, 0.0, str) | found
        english.update(found)
        for key, others in found.items():
            for other, weight in others.items():
                near[key][other] = (NEIGHBOUR, weight)
    foreign = defaultdict(dict)
    for path in options.synonyms:
        words, others = synonyms(path)
        for key, keys in others.items():
            foreign[key].update(keys)
        for key, others in words.items():
            for other, weight in others.items():
                if weight >= near[key].get(other, (NEIGHBOUR, 0.0))[1]:
                    near[key][other] = (SYNONYM, weight)
    vectors, dimensions, usual = {}, 0, 1.0
    if options.vectors:
        words, places = vectors_of(options.vectors)
        dimensions = places.shape[1]
        vectors = dict(zip(words, places))
        # A word of another language lies where its translations lie, unless it is an English one as well.
        translations = {key for keys in foreign.values() for key in keys if key not in english}
        for key in translations:
            vectors.pop(key, None)
        usual = float(np.median([length for length in map(np.linalg.norm, vectors.values()) if length > 0]))
        for key in sorted(translations):
            targets = [vectors[other] for other in near[key] if other in vectors and other not in translations]
            if targets:
                vectors[key] = np.mean(targets, axis=0)
    keys = sorted(
        set(foreign)
        | set(vectors) | set(near) | {other for others in near.values() for other in others},
        key=lambda key: key.encode(),
    )
    assert len(keys) < 65535, len(keys)
    number = {key: at for at, key in enumerate(keys)}
    bits = (2 * len(keys) - 1).bit_length()
    slots = [0] * (1 << bits)
    for key in keys:
        slot = fnv1a(key.encode()) & ((1 << bits) - 1)
        while slots[slot]:
            slot = (slot + 1) & ((1 << bits) - 1)
        slots[slot] = number[key] + 1
    blob, key_starts = b"", [0]
    parts = []
    for key in keys:
        parts.append(key.encode())
        key_starts.append(key_starts[-1] + len(parts[-1]))
    blob = b"".join(parts)
    blob += b"\0" * (-len(blob) % 4)
    entries, near_starts = [], [0]
    for key in keys:
        best = sorted(near.get(key, {}).items(), key=lambda item: (-item[1][1], item[0]))[:MAX_NEAR]
        others = sorted(foreign.get(key, {}).items())[:MAX_FOREIGN]
        best += [(other, (SYNONYM, weight)) for other, weight in others if other not in dict(best)]
        for other, (kind, weight) in best:
            entries.append(struct.pack("<HBB", number[other], kind, max(1, round(255 * min(1.0, weight)))))
        near_starts.append(len(entries))
    lengths = {key: float(np.linalg.norm(vector)) for key, vector in vectors.items()}
    norms = np.zeros(len(keys), np.float32)
    matrix = np.zeros((len(keys), dimensions), np.int8)
    for key, vector in vectors.items():
        scale = float(np.abs(vector).max()) or 1.0
        norms[number[key]] = scale / 127
        matrix[number[key]] = np.round(vector / scale * 127)
    with open(options.out, "wb") as file:
        file.write(b"ASTW" + struct.pack("<5I", 2, len(keys), bits, dimensions, len(entries)))
        file.write(struct.pack(f"<{len(slots)}H", *slots))
        file.write(struct.pack(f"<{len(key_starts)}I", *key_starts))
        file.write(blob)
        file.write(struct.pack(f"<{len(near_starts)}I", *near_starts))
        file.write(b"".join(entries))
        file.write(norms.astype("<f4").tobytes())
        file.write(bytes(round(255 * says(lengths.get(key, usual) / usual)) for key in keys))
        file.write(matrix.tobytes())
        print(f"{len(keys)} words, {len(entries)} near, {dimensions} dimensions, {file.tell()} bytes")


if __name__ == "__main__":
    main()
