"""The way of a published NEZHA through the pages: downloaded, examined, pretrained, fine-tuned."""

import gzip
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import commands
import numpy as np
import pages
import pytest
import waiting
from conftest import GOLDEN, REPOSITORY, RESOURCES
from hub_server import serving
from published_models import MODELS
from safetensors.numpy import load_file, save_file

NAME = "sijunhe/nezha-cn-base"
FOLDER = "published/nezha-cn-base"
# Its tokenizer_config.json.
TOKENIZER = {
    "cls_token": "[CLS]",
    "do_basic_tokenize": True,
    "do_lower_case": True,
    "mask_token": "[MASK]",
    "name_or_path": "nezha-cn-base",
    "never_split": None,
    "pad_token": "[PAD]",
    "sep_token": "[SEP]",
    "special_tokens_map_file": None,
    "strip_accents": None,
    "tokenize_chinese_chars": True,
    "tokenizer_class": "BertTokenizer",
    "unk_token": "[UNK]",
}
# What makes the commands of the page short, by program.
RUN = ("--num_train_steps=2", "--num_warmup_steps=1", "--train_batch_size=4", "--nojit_compile")
RUN += ("--eval_batch_size=4", "--save_checkpoints_steps=2")
SHORT = {
    "tools/create_pretraining_data.py": (
        *("--dupe_factor=1", "--max_seq_length=32", "--max_predictions_per_seq=5"),
        *("--eval_share=0.2", "--num_workers=1"),
    ),
    "run_pretraining.py": (*RUN, "--max_eval_steps=2"),
    "run_classifier.py": (*RUN, "--max_seq_length=16"),
}


def of_the_model(page):
    """Returns the words of the commands of a page that have to do with the model."""
    parts = (NAME, FOLDER, "out/continued")
    found = [words for _, words in pages.commands(page)]
    return [words for words in found if any(part in word for part in parts for word in words)]


def published(folder):
    """Returns {name: bytes} of a NEZHA with the names of files, keys and weights of `NAME`.

    It has tiny sizes, and passes through a folder.
    """
    row = MODELS[NAME]
    golden = GOLDEN / "hugging_face_nezha"
    sizes = ("hidden_size", "num_attention_heads", "intermediate_size")
    sizes = {key: json.loads((golden / "config.json").read_text())[key] for key in sizes}
    sizes["num_hidden_layers"] = 1
    tokens = len((RESOURCES / "vocab.txt").read_text(encoding="utf-8").splitlines())
    weights = load_file(golden / "model.safetensors")
    # One layer is enough, and the published file is of a model of masked LM alone.
    left_out = (".layer.1.", "cls.seq_relationship.")
    weights = {n: v for n, v in weights.items() if not any(part in n for part in left_out)}
    table = np.random.default_rng(0).normal(0, 0.2, (tokens, sizes["hidden_size"]))
    table = table.astype(np.float32)
    weights["nezha.embeddings.word_embeddings.weight"] = table
    weights["cls.predictions.decoder.weight"] = table.copy()
    weights["cls.predictions.bias"] = np.zeros(tokens, np.float32)
    # By its size it has no table of distances, unlike the files of the large models.
    names = {name for name in row.names if not name.endswith("positions_encoding")}
    assert set(weights) == names
    if importlib.util.find_spec("torch"):
        import torch

        path = folder / "pytorch_model.bin"
        torch.save({name: torch.tensor(value) for name, value in weights.items()}, path)
    else:  # A file of PyTorch cannot be read either.
        path = folder / "model.safetensors"
        save_file(weights, path)
    return {
        "config.json": json.dumps({**row.values, **sizes, "vocab_size": tokens}).encode(),
        "tokenizer_config.json": json.dumps(TOKENIZER).encode(),
        "README.md": b"---\nlicense: afl-3.0\n---\n",
        "vocab.txt": (RESOURCES / "vocab.txt").read_bytes(),
        path.name: path.read_bytes(),
    }


def download(words, folder, files):
    """Runs `hf download` in a folder, with a mirror that has the files under another name."""
    program = pathlib.Path(sys.executable).with_name("hf")
    with serving(files) as server:
        mirror = {"HF_ENDPOINT": server.url, "HF_HOME": str(folder / "cache")}
        arguments = ["owner/tiny" if word == NAME else word for word in words[1:]]
        command = [program, *arguments]
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **mirror},
            check=True,
            capture_output=True,
            timeout=waiting.TIME_LIMIT,
        )
    assert set(files) <= {path.name for path in (folder / FOLDER).iterdir()}


def write_texts(folder):
    """Writes what the page's reader brings along."""
    (folder / "corpus").mkdir()
    text = (RESOURCES / "sample_corpus.txt").read_bytes()
    (folder / "corpus" / "own.txt.gz").write_bytes(gzip.compress(text))
    (folder / "sentences.txt").write_text("今天的豆[MASK]是新磨的。\n", encoding="utf-8")
    rows = "text\tlabel\n房间很干净。\t好\n菜太咸了。\t差\n"
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(rows, encoding="utf-8")


def test_one_folder_is_downloaded_and_gone_on_with():
    [download] = [w for w in of_the_model("docs/en/checkpoints.md") if w[0] == "hf"]
    assert download == ["hf", "download", NAME, "--local-dir", FOLDER]
    first, *others = of_the_model("docs/en/pretraining.md")
    assert first == download
    programs = {words[1] for words in others}
    assert programs == {*SHORT, "tools/fill_mask.py", "tools/convert_checkpoint.py"}
    for words in (*others, *of_the_model("docs/en/checkpoints.md")):
        paths = [part for word in words for part in word.split("=") if "nezha-cn-base" in part]
        assert set(paths) <= {NAME, FOLDER, f"{FOLDER}/vocab.txt"}, words


@pytest.mark.processes
def test_the_steps_of_the_page(tmp_path):
    for path in ("configs", "nezha_tf"):
        (tmp_path / path).symlink_to(REPOSITORY / path)
    first, *others = of_the_model("docs/en/pretraining.md")
    download(first, tmp_path, published(tmp_path))
    write_texts(tmp_path)
    outputs = {}
    for python, script, *flags in others:
        assert python == "python"
        if script == "tools/convert_checkpoint.py":  # its own tests are in tests/checkpoints
            continue
        if any("out/general" in flag for flag in flags):  # another text of the reader's
            shutil.copytree(tmp_path / "out" / "continued", tmp_path / "out" / "general")
        ended = commands.run(script, *flags, *SHORT.get(script, ()), folder=tmp_path)
        assert ended.returncode == 0, (script, ended.stdout[-2000:], ended.stderr[-2000:])
        assert "warning" not in ended.stderr, ended.stderr
        outputs.setdefault(script, []).append(ended.stdout)
    before, trained, with_general = outputs["run_pretraining.py"]
    assert "part out/general/train*.tfrecord of --input_file: 20.0%" in with_general
    for output in (before, trained, with_general):
        line = next(line for line in output.splitlines() if line.startswith("weights from"))
        assert "missing there, so random: cls/seq_relationship/output_weights" in line
        assert line.count("cls/") == 2 and "bert/" not in line, line
    results = json.loads((tmp_path / "out/continued/before/eval_results.json").read_text())
    assert "masked_lm_loss" in results and "next_sentence_loss" not in results
    model = tmp_path / "out" / "continued" / "model"
    vocabulary = (RESOURCES / "vocab.txt").read_bytes()
    assert (model / "vocab.txt").read_bytes() == vocabulary
    assert json.loads((model / "bert_config.json").read_text())["hidden_act"] == "gelu_erf"
    [output] = outputs["run_classifier.py"]
    assert "missing there, so random: output_weights, output_bias;" in output
    assert (tmp_path / "out" / "task" / "eval_results.txt").exists()
