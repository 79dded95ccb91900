"""Texts as users have them, and worse; and a simple reader of them, to check the tools."""

import functools
import gzip
import json
import unicodedata

from conftest import RESOURCES

from nezha_tf import FullTokenizer

VOCABULARY = RESOURCES / "vocab.txt"
LONGEST_LINE = 10_000  # the README says so
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The separator of documents in a text with one character per token.
BORDER = "\0"

# White space other than line ends, combining marks, several scripts, characters that a tokenizer
# drops, beyond 16 bits, outside the vocabulary, and names of tokens.
ODD = (
    *"\t\x0b\x0c\x1c\x85\u00a0\u2028\u3000\r",
    *("e\u0301", "CAFÉ", "İstanbul", "ΣΑΣ", "ﬁn", "２０２３", "25℃", "3.14", "a.b@c", "C++"),
    *("한국어", "\u0e01\u0e33", "עברית", "😀", "𠮷", "龘", "\u200b", "\0", "\ufffd", "\u0301"),
    *("[MASK]", "[SEP]", "[PAD]", "##a", "x" * 150, "x" * 250, "Hello", "world", "——", "……"),
)
# The tokenizer drops these characters, and they are not white space either.
NO_TOKENS = ("\u200b", "\0", "\u200b\u200d", "\x01\x02")
BETWEEN = ("\n\n", "\n\n", "\n\n\n", "\n \n", "\n\u3000\t\n\n", "\n\x85\n")
NO_UTF_8 = (b"\xff\xfe", b"\xe4\xbd", b"\xed\xa0\x80", b"\x80")


@functools.cache
def sample():
    """Returns the documents of the bundled text, lists of sentences."""
    text = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8")
    return [document.split("\n") for document in text.strip().split("\n\n")]


def sentences(rng, count):
    """Draws sentences of the bundled text."""
    return [rng.choice(rng.choice(sample())) for _ in range(count)]


@functools.cache
def tokenizer(do_lower_case):
    return FullTokenizer(VOCABULARY, do_lower_case)


@functools.cache
def ids_of(text, do_lower_case):
    """Returns the ids of a text's tokens, from the tokenizer in Python."""
    found = tokenizer(do_lower_case)
    return found.convert_tokens_to_ids(found.tokenize(text))


def draw_document(rng):
    """Returns the lines of a document, none of them blank."""
    kind = rng.choices(_KINDS, _WEIGHTS)[0]
    lines = kind(rng)
    return [line for line in lines if line.strip()] or ["好"]


def _plain(rng):
    return list(rng.choice(sample()))


def _mixed(rng):
    return sentences(rng, rng.randint(2, 12))


def _single(rng):
    return sentences(rng, 1)


def _characters(rng):
    text = "".join(sentences(rng, 2))
    return [rng.choice(text) for _ in range(rng.randint(1, 15))]


def _repeated(rng):
    return sentences(rng, 1) * rng.randint(2, 8)


def _long(rng):
    text = "".join(sentences(rng, rng.randint(5, 40)))
    if rng.random() < 0.1:
        text *= 1 + (LONGEST_LINE + rng.randint(-5, 500)) // len(text)
    return [text, *sentences(rng, rng.randint(0, 2))]


def _odd(rng):
    words = (*ODD, *"".join(sentences(rng, 1)), " ")
    return ["".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(rng.randint(1, 8))]


def _nothing(rng):
    return [rng.choice(NO_TOKENS) for _ in range(rng.randint(1, 2))]


_KINDS = (_plain, _mixed, _single, _characters, _repeated, _long, _odd, _nothing)
_WEIGHTS = (6, 4, 2, 1, 1, 1, 2, 0.3)


def draw_texts(case, count, do_lower_case, longest=80):
    """Draws texts that hold a token at least, without white space around them.

    Args:
      case: the `Case`.
      count: how many.
      do_lower_case: of the tokenizer.
      longest: bound on their characters.
    """
    texts = []
    while len(texts) < count:
        text = "".join(sentences(case.rng, case.rng.randint(1, 3)))
        start = case.rng.randrange(len(text))
        text = text[start : start + case.rng.randint(1, longest)]
        if case.some(0.2):
            words = [*text, *case.rng.choices(ODD, k=3)]
            case.rng.shuffle(words)
            text = "".join(words)
        text = text.strip()
        if ids_of(text, do_lower_case):
            texts.append(text)
    return texts


def write_corpus(case, with_no_utf_8):
    """Draws text files into the inputs of a case.

    Args:
      case: the `Case`.
      with_no_utf_8: whether some bytes are no UTF-8.

    Returns:
      What --input_file is, seen from a folder of the case.
    """
    rng = case.rng
    names = [f"text-{n}.txt{rng.choice(('', '', '.gz'))}" for n in range(rng.randint(1, 3))]
    for name in names:
        most = rng.choice((1, 3, 12, 12, 30))
        data = _encoded(rng, [draw_document(rng) for _ in range(rng.randint(1, most))])
        if with_no_utf_8 and name is names[-1]:
            place = rng.randint(0, len(data))
            data = data[:place] + rng.choice(NO_UTF_8) + data[place:]
        (case.inputs / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    if case.some(0.5):
        return "../inputs/text-*"
    rng.shuffle(names)
    return ",".join(f"../inputs/{name}" for name in names)


def _encoded(rng, documents):
    text = rng.choice(("", "", "\n", " \n\n"))
    for document in documents:
        text += rng.choice(("", "", " ")) + "\n".join(document) + rng.choice(BETWEEN)
    if rng.random() < 0.3:
        text = text.rstrip("\n")
    if rng.random() < 0.2:
        text = text.replace("\n", "\r\n")
    return rng.choice((b"", b"", b"", BYTE_ORDER_MARK)) + text.encode()


def write_user_dict(case, documents):
    """Draws a dictionary of parts of a text: `words.txt` in the inputs."""
    words, rng = set(), case.rng
    lines = [sentence for document in documents for sentence in document if sentence.strip()]
    for sentence in rng.choices(lines or ["豆浆"], k=rng.randint(1, 8)):
        start, length = rng.randrange(len(sentence)), rng.randint(2, 5)
        word = sentence[start : start + length].strip()
        if word and not any(char.isspace() or char == "\0" for char in word):
            words.add(word)
    ends = ("", " 100", " 5 n")
    lines = [word + rng.choice(ends) for word in sorted(words) or ["豆浆"]]
    (case.inputs / "words.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_documents(paths, on_invalid):
    """Returns (documents of files, lists of sentences; whether all was UTF-8)."""
    documents, is_utf_8 = [], True
    for path in sorted(paths):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.name.endswith(".gz") else data
        documents.append([])
        for line in data.removeprefix(BYTE_ORDER_MARK).split(b"\n"):
            sentence = line.decode(errors="replace").strip()
            if not _is_visible(sentence):
                documents.append([])
            elif not _is_utf_8(line):
                is_utf_8 = False
                documents[-1] += _cut(sentence) if on_invalid == "replace" else [""]
            else:
                documents[-1] += _cut(sentence)
    return [document for document in documents if document], is_utf_8


def _is_visible(sentence):
    """Whether it has more than white space, control characters and characters without a form."""
    return any(
        unicodedata.category(char) not in ("Cc", "Cf", "Zs", "Zl", "Zp") for char in sentence
    )


def _is_utf_8(line):
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cut(sentence):
    starts = range(0, len(sentence), LONGEST_LINE)
    return [sentence[start : start + LONGEST_LINE].strip() for start in starts]


class Tokens:
    """A corpus as a string with a character for each token: what is looked for is quickly found.

    Attributes:
      text: the documents that have a token, a `BORDER` behind each.
      bounds: set of the places in it where a sentence begins or one ends.
      first, last: sets of the places where a document begins, and where one ends.
      documents, sentences, characters: how many there are; of the first two those with a token.
    """

    def __init__(self, documents, do_lower_case):
        text, self.bounds, self.first, self.last = [], set(), set(), set()
        place = self.documents = self.sentences = 0
        self.characters = sum(len(line) for document in documents for line in document)
        for document in documents:
            tokens = [ids_of(sentence, do_lower_case) for sentence in document]
            tokens = [ids for ids in tokens if ids]
            if not tokens:
                continue
            self.documents += 1
            self.sentences += len(tokens)
            self.first.add(place)
            for ids in tokens:
                self.bounds |= {place, place + len(ids)}
                text.append(as_text(ids))
                place += len(ids)
            self.last.add(place)
            text.append(BORDER)
            place += 1
        self.text = "".join(text)
        self._ends = sorted(self.bounds)

    def places(self, text):
        """Yields the places of a sequence of tokens."""
        place = self.text.find(text)
        while place >= 0:
            yield place
            place = self.text.find(text, place + 1)

    def are_in_order(self, first, second):
        """Whether some document contains one sequence, and another one after it."""
        return any(
            0 <= document.find(first) <= document.rfind(second) - len(first)
            for document in self.text.split(BORDER)
        )

    @functools.cached_property
    def next_length(self):
        """Dict of each bound that does not end a document to the length of the sentence there."""
        pairs = zip(self._ends, self._ends[1:], strict=False)
        return {start: end - start for start, end in pairs if start not in self.last}


def as_text(ids):
    return "".join(chr(number + 1) for number in ids)


def write_json_lines(path, rows):
    """Writes a JSON line for each row."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
