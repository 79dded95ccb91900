"""A model of a hub in the places where a model's folder may stand, and in the record of a run."""

import shutil

import pytest
from checkpoint_models import write_vocabulary
from commands import assert_one_line, ended, start
from conftest import GOLDEN
from hub_server import FIRST, SECOND, serving
from huggingface_hub import ModelCard

from nezha_tf import hub
from nezha_tf.training.settings import RunSettings
from nezha_tf.training.workers import compared_values

NAME = "hf:owner/tiny"
TOKENS = 30  # of the golden model


@pytest.fixture
def tiny(tmp_path):
    """A server with a NEZHA that transformers has saved, and a function that starts programs."""
    write_vocabulary(tmp_path / "vocab.txt", TOKENS)
    paths = [tmp_path / "vocab.txt"]
    paths += [GOLDEN / "hugging_face_nezha" / name for name in ("config.json", "model.safetensors")]
    with serving({path.name: path.read_bytes() for path in paths}) as server:
        paths[0].unlink()
        environment = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "cache")}

        def run(script, *flags, **more):
            own = {**environment, **more}
            return ended(start(script, *flags, folder=tmp_path, environment=own))

        yield server, run


@pytest.mark.processes
def test_a_run_keeps_the_commit_and_goes_on_without_asking(tiny, tmp_path):
    server, run = tiny
    (tmp_path / "train.tsv").write_text("text\tlabel\nw1\t1\nw2\t0\n", encoding="utf-8")
    command = ("run_classifier.py", f"--init_checkpoint={NAME}", "--do_train", "--output_dir=run")
    command += ("--task_name=custom", "--train_file=train.tsv", "--max_seq_length=8")
    command += ("--train_batch_size=2", "--num_train_steps=1", "--nojit_compile")
    begun = run(*command)
    assert begun.returncode == 0, begun.stderr
    [line] = [line for line in begun.stdout.splitlines() if line.startswith("weights from")]
    assert "missing there, so random: output_weights, output_bias;" in line
    record = (tmp_path / "run" / "run.flags").read_text(encoding="utf-8")
    assert f"--init_checkpoint={NAME}@{FIRST}\n" in record
    assert "--vocab_file" not in record and "--bert_config_file" not in record
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert f"from the checkpoint `{NAME}@{FIRST}`" in card
    assert ModelCard(card).data.base_model == NAME.removeprefix("hf:")
    # The branch moves on, and the cache is emptied.
    server.head = SECOND
    shutil.rmtree(tmp_path / "cache")
    server.asked.clear()
    again = run(*command)
    assert again.returncode == 0 and not server.asked, again.stderr
    assert "nothing to train: run/model.ckpt-1 is at step 1 already" in again.stdout
    assert "flags that changed" not in again.stdout


@pytest.mark.processes
def test_programs_take_the_name_of_a_model(tiny):
    _, run = tiny
    filled = run("tools/fill_mask.py", f"--model_folder={NAME}", "--text=w1[MASK]")
    assert filled.returncode == 0 and filled.stderr == "", filled.stderr
    assert len(filled.stdout.splitlines()) >= 3
    absent = run("tools/fill_mask.py", "--init_checkpoint=hf:owner/none", "--text=w1[MASK]")
    assert_one_line(absent, "hf:owner/none: it is not there, or is private")


def test_workers_compare_names_and_ask_nobody():
    names = [f"{NAME}@{commit}" for commit in (FIRST, SECOND)]
    settings = [RunSettings(init_checkpoint=name) for name in names]
    assert [compared_values(each)["init_checkpoint"] for each in settings] == names
    assert not any(name in hub._known for name in names)
