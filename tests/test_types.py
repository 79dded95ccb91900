"""A type checker sees the public names, and what they take and give."""

import importlib
import inspect
import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY
from waiting import TIME_LIMIT

import nezha_tf

# A user's program; the lines with a comment are wrong, and the checker says it in such words.
PROGRAM = """
import pathlib

import nezha_tf

config = nezha_tf.NezhaConfig.from_json_file("nezha_tiny")
small = nezha_tf.NezhaConfig(vocab_size=9200, hidden_size=128, num_attention_heads=2)
config.to_json_file(pathlib.Path("bert_config.json"))
width: int = config.head_size
tokenizer, model = nezha_tf.load(pathlib.Path("mini"))
tokens: list[str] = tokenizer.tokenize("今天")
ids: list[int] = tokenizer.convert_tokens_to_ids(tokens)
starts: list[int] = [token.start for token in tokenizer.tokenize_with_offsets("今天")]
vocabulary: nezha_tf.Vocabulary = tokenizer.vocabulary
in_graph = nezha_tf.GraphTokenizer(vocabulary, do_lower_case=False)
encoder = nezha_tf.NezhaEncoder(config, pooled_only=True, dtype="mixed_float16")
heads = nezha_tf.NezhaForPreTraining(config, layer_mix=True)
schedule = nezha_tf.warmup_linear_decay(1e-4, num_train_steps=100, num_warmup_steps=10)
optimizers = nezha_tf.Lamb(schedule, variant="paper"), nezha_tf.AdamWeightDecay(1e-4, beta_1=0.8)
options = nezha_tf.GenerationOptions(method="sample", top_p=0.9)
generator = nezha_tf.Generator(heads, vocabulary, nezha_tf.TargetFormat(), options)
nezha_tf.checkpoints.save_tf1_checkpoint(heads, "model.ckpt")
classifier = nezha_tf.TextClassifier.from_preset("mini", labels=["good", "bad"])
classifier.fit(["今天"], ["good"], output_dir=pathlib.Path("out"))
inputs = nezha_tf.Tokenizer.from_preset("mini")(["今天"], max_length=8)
version: str = nezha_tf.__version__
nezha_tf.NezhaConfg  # has no attribute "NezhaConfg"
nezha_tf.NezhaConfig()  # Missing named argument "vocab_size"
nezha_tf.NezhaConfig(vocab_size="9200")  # expected "int"
nezha_tf.NezhaEncoder("mini")  # expected "NezhaConfig"
nezha_tf.NezhaForMaskedLM(config, layer_mix="yes")  # expected "bool"
nezha_tf.GraphTokenizer("vocab.txt")  # expected "Vocabulary"
nezha_tf.Lamb(variant=3)  # expected "str"
nezha_tf.load(3)  # expected "str | PathLike[str]"
nezha_tf.model_folder.open_folder("mini", vocab_file=3)  # expected "str | PathLike[str] | None"
nezha_tf.TargetFormat(mode=1)  # expected "str"
nezha_tf.enable_lora(heads, rank="8")  # expected "int"
classifier.predict([1])  # expected "str"
tokenizer.tokenize(["今天"])  # expected "str"
tokenizer.tokenise("今天")  # has no attribute "tokenise"
number: int = tokenizer.convert_ids_to_tokens(ids)  # expression has type "list[str]"
"""


@pytest.mark.processes
def test_a_program_of_a_user(tmp_path):
    pytest.importorskip("mypy", reason="pip install -e '.[test]'")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    options = ["--ignore-missing-imports", "--follow-imports=silent", "--no-color-output"]
    told = subprocess.run(
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path / 'cache'}", path.name],
        cwd=tmp_path,
        env={"MYPYPATH": str(REPOSITORY), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    ).stdout
    found = dict(re.findall(r"^program\.py:(\d+): error: (.*?)  \[", told, re.MULTILINE))
    lines = enumerate(PROGRAM.splitlines(), start=1)
    wrong = {str(n): line.partition("  # ")[2] for n, line in lines if "  # " in line}
    assert found.keys() == wrong.keys(), told
    for number, words in wrong.items():
        assert words.replace("*", "") in found[number], told


def test_a_checker_sees_the_names_that_are_imported_on_first_use():
    source = (REPOSITORY / "nezha_tf" / "__init__.py").read_text()
    block = source.partition("if typing.TYPE_CHECKING:\n")[2].partition("\nelse:")[0]
    names = re.findall(r" as ([a-zA-Z]\w*),?$|^    (\w+) = _", block, re.MULTILINE)
    assert sorted(filter(None, (name for pair in names for name in pair))) == nezha_tf.__all__
    assert (REPOSITORY / "nezha_tf" / "py.typed").is_file()
    for module, name in re.findall(r"from (\S+) import (\w+) as [A-Za-z]", block):
        found = importlib.import_module(module)
        assert getattr(found, name, None) is getattr(nezha_tf, name), name


@pytest.mark.parametrize("name", nezha_tf.__all__)
def test_what_is_public_has_annotations(name):
    found = getattr(nezha_tf, name)
    if inspect.ismodule(found):
        return
    functions = [found] if inspect.isfunction(found) else [found.__init__]
    for function in functions:
        for argument in list(inspect.signature(function).parameters.values()):
            assert argument.name == "self" or argument.annotation is not argument.empty, argument
