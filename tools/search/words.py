"""Words and stems as the search makes them (aster-runtime/src/search/tokens.rs and language.rs)."""

import functools
import re
import unicodedata

import snowballstemmer

ENGLISH = snowballstemmer.stemmer("english")
STOP = set(
    """a about above after again all also am an and any are as at be been before being but by can could did do does
    doing for from had has have having he her here him his how i if in into is it its just may me might more most must my
    no nor not of on only or our ours out over own please she should so some such than that the their them then there
    these they this those through to too under up upon us very was we were what when where which while who whom whose why
    will with would you your yours s t re ve ll d m""".split()
)
UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"


@functools.lru_cache(None)
def stem(word):
    """Porter2; short words and those with digits stay."""
    if len(word.encode()) < 3 or any(c.isdigit() for c in word):
        return word
    return plain(ENGLISH.stemWord(word))


def plain(word):
    """Without the accents of Latin letters."""
    if word.isascii() or not any("\u00c0" <= c <= "\u024f" for c in word):
        return word
    word = "".join(c for c in unicodedata.normalize("NFD", word) if not 0x300 <= ord(c) <= 0x36F)
    return word.replace("ı", "i").replace("ø", "o").replace("ł", "l")


def raw(text):
    """The lower-case words of a text: parts of identifiers, then the whole, and pairs of unspaced characters."""
    words = []
    for run in re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text)):
        for part in re.findall(f"[{UNSPACED}]+|[^{UNSPACED}]+", run):
            if re.match(f"[{UNSPACED}]", part):
                words += [part] if len(part) == 1 else [part[at : at + 2] for at in range(len(part) - 1)]
                continue
            parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z\d]+|\d+", part)
            if len(parts) > 1:
                words += [one.lower() for one in parts]
            words.append(part.lower())
    return words


def toks(text):
    """The stems of what a text is about."""
    words = raw(text)
    kept = [word for word in words if word not in STOP]
    return [stem(word) for word in (kept or words)]


def stems_of(text, language):
    """The keys under which a word of the synonyms or translations stands."""
    if language == "english":
        return toks(text)
    if language in ("han", "kana", "hangul"):
        # Of a longer word its last pair: 文件夹 is told from 文件 by its end.
        run = re.findall(r"[\u30a0-\u30ff]+|[\u3040-\u309f]+|[\u3400-\u9fff\uac00-\ud7a3]+", text)
        run = next((part for part in run if not re.match(r"[\u3040-\u309f]", part)), run[0])
        return [run if re.match(r"[\u30a0-\u30ff]", run) or len(run) <= 2 else run[-2:]]
    stemmer = turkish if language == "turkish" else snowballstemmer.stemmer(language).stemWord
    return [plain(stemmer(word) if len(word.encode()) >= 3 else word) for word in raw(text)]


def turkish(word):
    """What is left when neither Snowball nor the list of verbs' endings has anything to strip; three letters stay."""
    snowball = snowballstemmer.stemmer("turkish").stemWord
    while True:
        shorter = snowball(word)
        if not len(word.encode()) > len(shorter.encode()) or len(shorter) < 3:
            shorter = re.sub("([ıiuü]yor|m[ae]k?|(?<=[aeıioöuü])r)$", "", word)
        if shorter == word or len(shorter) < 3:
            return word
        word = shorter
