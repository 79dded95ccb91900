"""The messages of the package, out of its source, and the file with their translations.

`python tests/messages.py` writes the catalogue anew: messages that are new get an empty
translation, those that are gone are removed, and all others keep theirs.
"""

import ast
import itertools
import json
import pathlib
import re
import string
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "nezha_tf"
CATALOGUE = PACKAGE / "resources" / "zh.po"
sys.path.insert(0, str(REPOSITORY))  # also where the package is not installed

from nezha_tf.util.language import NUMBER, read_catalogue  # noqa: E402

# Two words, or one beside a placeholder or a flag, make a text a message.
_WORDS = re.compile(
    r"[A-Za-z][A-Za-z0-9'’]*[,;:.)\"]* [(\[\"]?([a-z]|--)|\} [a-z]{2,}|^the \S"
    r"|(^|[ ,;:(])[A-Za-z]{2,}[:;,]? \{"
)
# What these get is code: patterns, separators, names.
_NO_MESSAGES = {
    "compile", "search", "match", "fullmatch", "sub", "findall",
    "split", "rsplit", "splitlines", "partition", "rpartition", "replace",
    "startswith", "endswith", "removeprefix", "removesuffix", "index", "find", "count",
    "getattr", "strftime", "legend", "import_module", "blake2b",
}  # fmt: skip
_NO_MESSAGE_KEYWORDS = {"loc", "bar_format", "pattern"}
# Errors of the programmer, who gets a traceback.
_DEFECTS = {"NotImplementedError", "AttributeError", "KeyError", "RuntimeError"}
# Code in texts, and what programs read again.
_NOT_SHOWN = {
    "FATAL Flags parsing error:",
    "Pass --helpshort",
    "--nodo_train --nodo_eval --do_predict",
    "import nezha_tf",
    'tokenizer, model = nezha_tf.load("{0}")',
    "python {0}",
    "python -m nezha_tf",
    "pip install nezha_tf",
    "pip install 'nezha_tf{0}'",
    "train {0}",
    "eval {0}",
    "predict {0}",
    "the {0}",
    "{0} for {1}",
    "held out {0} {1}",
    "{0}: this is no entry: {1}",
    " [while running '",
    "--name=nezha_tf {0} pyspark-shell",
    "nezha_tf pretraining shard 1",
    "nezha_tf pretraining data 1",
    "import tensorflow as tf, tensorflow_text",
    "# From step {0} on; earlier flags: {1}.",
    "process {0} on {1}",
}
# Titles of the panels of curves, and stages of making data.
_NAMES_SHOWN = {"TITLES", "STAGES"}
# Nouns that reach `console.plural` by a variable.
_NOUNS = ("line", "source", "target", "text", "pair", "choice")
# What others say: absl about flags, and the system about files.
FOREIGN = (
    "flags:",
    "(default: {0})",
    "(an integer)",
    "(a positive integer)",
    "(a non-negative integer)",
    "(an integer in the range [{0}, {1}])",
    "(integer >= {0})",
    "(integer <= {0})",
    "(a number)",
    "(a positive number)",
    "(a non-negative number)",
    "(a number in the range [{0}, {1}])",
    "(number >= {0})",
    "(number <= {0})",
    "(a comma separated list)",
    "Try --helpfull to get a list of all flags.",
    "Unknown command line flag '{0}'",
    "Unknown command line flag '{0}'. Did you mean: {1} ?",
    "flag --{0}={1}: value should be one of <{2}>",
    "flag --{0}={1}: invalid literal for int() with base 10: {2}",
    "flag --{0}={1}: could not convert string to float: {2}",
    "flag --{0}={1}: Non-boolean argument to boolean flag",
    "flag --{0}={1}: ('Non-boolean argument to boolean flag', {2})",
    "flag --{0}={1}: {2} is not {3}",
    "Missing value for flag --{0}",
    "ERROR:: Unable to open flagfile: {0}",
    "an integer in the range [{0}, {1}]",
    "a positive integer",
    "a non-negative integer",
    "a positive number",
    "a non-negative number",
    "a number in the range [{0}, {1}]",
    "No such file or directory",
    "Permission denied",
    "Is a directory",
    "Not a directory",
    "File exists",
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "File name too long",
    "Too many open files",
    "Too many open files in system",
    "Cannot allocate memory",
    "Resource temporarily unavailable",
    "Input/output error",
    "Read-only file system",
    "Directory not empty",
    "Address already in use",
    "No module named {0}",
)


def messages():
    """Returns the templates of all messages, in the order of the source.

    A template is a text in which {0}, {1} ... stand for values. A text with alternatives, such as
    `"a" if b else "c"`, gives a template for each.

    Returns:
      Dict of template to (module, list of the expressions of its placeholders).
    """
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        finder = _Finder()
        finder.visit(ast.parse(path.read_text(encoding="utf-8")))
        for text, names in finder.found:
            found.setdefault(text, (path.relative_to(REPOSITORY).as_posix(), names))
    for noun in _NOUNS:
        for text in _counts(noun):
            found.setdefault(text, ("plural", ["number"]))
    for text in FOREIGN:
        found.setdefault(text, ("absl and the system", []))
    return found


def _counts(noun):
    return f"{{0:{NUMBER}}} {noun}", f"{{0:{NUMBER}}} {noun}s"


class _Finder(ast.NodeVisitor):
    """Collects the messages of a module."""

    def __init__(self):
        self.found = []

    def visit(self, node):
        if _is_text(node):
            self._add(node, is_message=False)
            for part in _values(node):
                self.visit(part)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            super().visit(node)

    def visit_Compare(self, node):
        pass

    def visit_Raise(self, node):
        if not (isinstance(node.exc, ast.Call) and _name(node.exc.func) in _DEFECTS):
            self.generic_visit(node)

    def visit_Call(self, node):
        name = _name(node.func)
        self.visit(node.func)
        if name == "plural" and isinstance(node.args[1], ast.Constant):
            self.found += [(text, ["number"]) for text in _counts(node.args[1].value)]
            self.visit(node.args[0])
        elif name == "translated" and _is_text(node.args[0]):
            self._add(node.args[0], is_message=True)
        elif name == "_table" and isinstance(node.args[0], ast.Tuple):
            self._add_all(node.args[0].elts)
            self.visit(node.args[1])
        elif name in ("caption", "_caption"):
            self._add_all([argument for argument in node.args if _is_text(argument)])
        elif name == "read_with_progress" and _is_text(node.args[1]):
            self._add(node.args[1], is_message=True)
        else:
            for part in (*node.args, *node.keywords):
                if name in _NO_MESSAGES and _is_text(part):
                    continue
                is_label = isinstance(part, ast.keyword) and part.arg in ("desc", "unit")
                if is_label and name == "progress" and _is_text(part.value):
                    self._add(part.value, is_message=part.value.value != "B")
                elif not (isinstance(part, ast.keyword) and part.arg in _NO_MESSAGE_KEYWORDS):
                    self.visit(part)

    def visit_Tuple(self, node):
        """The first of a tuple of a text and a formatted value is the name of a table's row."""
        first, *others = node.elts or [node]
        if others and isinstance(first, ast.Constant) and isinstance(others[0], ast.JoinedStr):
            self._add(first, is_message=re.fullmatch(r"[a-z -]+", str(first.value)))
        self.generic_visit(node)

    def visit_Assign(self, node):
        """Some tables of names that are shown."""
        if _NAMES_SHOWN & {_name(target) for target in node.targets}:
            self._add_all(getattr(node.value, "values", None) or node.value.elts)
        else:
            self.generic_visit(node)

    def _add_all(self, nodes):
        for node in nodes:
            if not (isinstance(node, ast.Constant) and node.value == ""):
                self._add(node, is_message=True)

    def _add(self, node, is_message):
        for parts in _alternatives(node):
            values = [part for part in parts if not isinstance(part, str)]
            names = list(map(_source, values))
            marks = iter(map(_mark, itertools.count(), values))
            text = "".join(
                _doubled(part) if isinstance(part, str) else next(marks) for part in parts
            )
            self.found += [
                line for line in _lines(text, names) if is_message or _WORDS.search(line[0])
            ]


def _lines(text, names):
    """Yields the lines of a template, each with placeholders from {0} on, and their expressions."""
    for line in text.split("\n"):
        numbers = placeholders(line)
        if not line.startswith("  ") and line not in _NOT_SHOWN:
            shifted = {number: str(place) for place, number in enumerate(numbers)}
            yield _renamed(line, shifted), [names[int(number)] for number in numbers]


def _renamed(template, names):
    parsed = string.Formatter().parse(template)
    return "".join(
        _doubled(text) + (f"{{{names[name]}{kind and f':{kind}'}}}" if name else "")
        for text, name, kind, _ in parsed
    )


def _doubled(text):
    return text.replace("{", "{{").replace("}", "}}")


def _source(node):
    return ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)


def _mark(place, node):
    """Returns a placeholder, which says whether its value is a number."""
    is_counted = isinstance(node, ast.Call) and _name(node.func) in ("len", "plural")
    if isinstance(node, ast.FormattedValue):
        kind = ast.unparse(node.format_spec)[2:-1] if node.format_spec else ""
        is_counted = kind == "," or kind[-1:] in tuple("defg%") or _mark(0, node.value) != "{0}"
    return f"{{{place}:{NUMBER}}}" if is_counted else f"{{{place}}}"


def _name(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def _is_text(node):
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or (isinstance(node.op, ast.Add) and _is_text(node.right))
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) or _is_text(node.orelse)
    if isinstance(node, ast.BoolOp):
        return any(map(_is_text, node.values))
    return isinstance(node, ast.JoinedStr)


def _alternatives(node):
    """Returns the lists of texts and of expressions that a text may consist of."""
    if isinstance(node, ast.FormattedValue):
        is_plain = node.format_spec is None and node.conversion == -1
        return _alternatives(node.value) if is_plain and _is_text(node.value) else [[node]]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [[node.value]]
    if isinstance(node, ast.JoinedStr):
        return _products(node.values)
    if not _is_text(node):
        return [[node]]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _products([node.left, node.right])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_alternatives(node.left), [""]]
    if isinstance(node, ast.IfExp):
        return [*_alternatives(node.body), *_alternatives(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [parts for value in node.values for parts in _alternatives(value)]
    return [[node]]


def _products(nodes):
    each = itertools.product(*map(_alternatives, nodes))
    return [[part for parts in chosen for part in parts] for chosen in each]


def _values(node):
    """Yields the expressions in a text that are no part of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FormattedValue) or _is_text(child):
            yield from _values(child)
        elif isinstance(child, ast.expr):
            yield child


def placeholders(template):
    """Returns the sorted names of a template's placeholders, "0" and so on."""
    return sorted(name for _, name, _, _ in string.Formatter().parse(template) if name)


def written(found, translations):
    """Returns the contents of the catalogue.

    Args:
      found: what `messages` returns.
      translations: dict of template to translation; what is missing becomes empty.
    """
    entries, last = (
        ["# The messages of nezha_tf in Chinese; tests/messages.py writes this file."],
        "",
    )
    for template, (module, names) in found.items():
        lines = [f"#: {module}"] if module != last else []
        if names:
            each = zip(placeholders(template), names, strict=True)
            values = "; ".join(f"{{{number}}}: {name}" for number, name in each)
            lines.append(f"#. {values}")
        lines.append(f"msgid {json.dumps(template, ensure_ascii=False)}")
        lines.append(f"msgstr {json.dumps(translations.get(template, ''), ensure_ascii=False)}")
        entries.append("\n".join(lines))
        last = module
    return "\n\n".join(entries) + "\n"


def main():
    found, translations = messages(), read_catalogue()
    CATALOGUE.write_text(written(found, translations), encoding="utf-8")
    lacking = [template for template in found if not translations.get(template)]
    print(f"{len(found)} messages, {len(lacking)} without a translation", *lacking, sep="\n")


if __name__ == "__main__":
    main()
