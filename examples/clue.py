"""Fine-tunes a model on the tasks of CLUE: a table of development figures, and submit.zip.

python examples/clue.py --model_folder=MODEL --clue_data=DATA --output_dir=out/clue [FLAG...]

DATA has a folder for each task, with the files of CLUE's archives: afqmc_public, tnews_public,
iflytek_public, cmnli_public, ocnli_public, cluewsc2020_public, csl_public, cmrc2018_public,
chid_public and c3_public; also without _public, and with FewCLUE's names. A task whose files are
not there is left out, and so is one that is done already. One that fails does not stop the others.
Further flags go to all programs: --num_seeds=3, --learning_rate=2e-5,3e-5,
--precision=mixed_float16. Another model or other flags need another --output_dir.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

try:
    from clue_results import figures_of, table, write_submission
    from clue_tasks import TASKS, Done, data_of, predictions_file, test_file, training_files

    from nezha_tf import inputs
    from nezha_tf.util import console, endings, files
    from nezha_tf.util.errors import STATUS_TERMINATED, Terminated, UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

# A test set may be there later than the run, and its batches do not change the training.
_PREDICTING = ("--do_predict", "--predict_file=", "--predict_batch_size=")
# Submissions are made of the predictions' JSON lines.
_FORMAT = "--predictions_format"
# The statuses of a program that was asked to end, or interrupted.
_INTERRUPTED, _INTERRUPT = 130, "SIGINT"
_ASKED_TO_END = (STATUS_TERMINATED, _INTERRUPTED, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT)
# What names a task's flag file in the clone, and the one that it begins with.
_FLAG_FILE = "--flagfile=configs/clue"
# The clone, as the working directory sees it.
_CLONE = os.path.relpath(pathlib.Path(__file__).resolve().parent.parent)


def main():
    console.show_anything()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model_folder", required=True, help="The folder of the model.")
    parser.add_argument("--clue_data", required=True, help="The folder of the tasks' folders.")
    parser.add_argument("--output_dir", required=True, help="Where runs and results are written.")
    parser.add_argument(
        "--c3_format",
        default="lines",
        choices=["lines", "list"],
        help="Predictions of C3: lines with id and label, as PaddleNLP writes them, or a list of "
        "labels, as CLUE's program does.",
    )
    # Abbreviations could be flags of the programs.
    parser.allow_abbrev = False
    flags, further = parser.parse_known_args()
    try:
        inputs.check({"init_checkpoint": flags.model_folder})
        done, failures = run_all(flags, further)
        if done:
            text = table(done)
            print(text)
            files.write_text(os.path.join(flags.output_dir, "results.txt"), text + "\n")
            print(write_submission(done, flags))
        if failures:
            told = ", ".join(failures)
            raise UserError(f"{console.plural(len(failures), 'task')} failed: {told}")
    except (UserError, OSError) as error:
        sys.exit(f"clue.py: error: {error}")
    except Terminated as end:
        print(end, file=sys.stderr)
        sys.exit(STATUS_TERMINATED)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def run_all(flags, further):
    """Runs all tasks whose data are there.

    Args:
      flags: an object with the flags of this program.
      further: list of flags for all programs.

    Returns:
      (list of `Done`, list of the names of the tasks that failed, which is told on stderr).

    Raises:
      UserError: there is no task, or submissions cannot be made of the predictions' format.
      Terminated: a program was asked to end; so the others are not started.
    """
    further = _joined(further)
    _check_format(further)
    done, failures = [], []
    for task in TASKS:
        data, lack = data_of(task, flags.clue_data)
        if lack:
            print(f"{task.name}: left out, {lack}")
            continue
        run_dir = os.path.join(flags.output_dir, task.name)
        program_flags = [*flags_of(task, data, flags.model_folder, run_dir), *further]
        try:
            run_once(Done(task, data, run_dir), program_flags)
            figures_of(task, run_dir)
        except UserError as error:
            print(f"{task.name}: error: {error}", file=sys.stderr, flush=True)
            failures.append(task.name)
        else:
            done.append(Done(task, data, run_dir))
    if not done and not failures:
        raise UserError(
            f"{flags.clue_data} has no folder of a task with its files, such as "
            f"{TASKS[0].folders[0]} with train.json and dev.json"
        )
    return done, failures


def _joined(flags):
    """Returns flags as --name=value, also those whose value is the next argument."""
    found = []
    for flag in flags:
        is_value = not re.match("--?[A-Za-z]", flag)
        if is_value and found and "=" not in found[-1]:
            found[-1] += f"={flag}"
        else:
            found.append(flag)
    return found


def _check_format(further):
    for flag in further:
        name, _, value = flag.lstrip("-").partition("=")
        if name == _FORMAT.lstrip("-") and value != "jsonl":
            raise UserError(f"{flag}: submit.zip is made of JSON lines; leave it out")


def flags_of(task, data, model_folder, run_dir):
    """Returns the flags of a task's program, a list."""
    found = [
        f"{_FLAG_FILE}_{task.name}.flags",
        f"--init_checkpoint={model_folder}",
        f"--output_dir={run_dir}",
    ]
    if task.name == "cmrc2018":
        parts = (("train_file", "train.json"), ("eval_file", "dev.json"))
        found += [f"--{flag}={os.path.join(data, name)}" for flag, name in parts]
    else:
        found.append(f"--data_dir={data}")
    if task.submission and test_file(data):
        found += ["--do_predict", f"--predict_file={test_file(data)}"]
    return found


def _in_clone(name):
    return os.path.normpath(os.path.join(_CLONE, name))


def _located(flag):
    """Returns a list of flags: those in the file, if the flag names one of the clone's files.

    Such a file names another one as from the clone, but the working directory may be elsewhere.
    """
    if not flag.startswith(_FLAG_FILE):
        return [flag]
    with open(_in_clone(flag.partition("=")[2]), encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [found for line in lines if line.startswith("-") for found in _located(line)]


def run_once(each, program_flags):
    """Runs a task's program unless it has ended before, with these flags and files.

    Both are noted before the program starts: a run that was killed goes on with them only. With
    another test set, or without its predictions, the program trains no more, but predicts.

    Args:
      each: the `Done` that it will be.
      program_flags: the program's flags.

    Raises:
      UserError: the folder has a run with other flags or files, or the program failed.
      Terminated: the program was asked to end.
    """
    task, data, run_dir = each
    note = os.path.join(run_dir, "clue.json")
    before = files.read_object(note) or {}
    now = {
        "flags": program_flags,
        "files": {path: _digest(path) for path in training_files(task, data)},
        "test": test_file(data) and _digest(test_file(data)),
        "is_done": True,
    }
    is_predicted = os.path.exists(predictions_file(task, run_dir))
    if before == now and (is_predicted or "--do_predict" not in program_flags):
        print(f"{task.name}: done before")
        return
    if has_checkpoint(run_dir):
        require_same(run_dir, before, now)
    print(f"{task.name}: {task.program} {' '.join(program_flags)}", flush=True)
    files.write_text(note, json.dumps({**now, "is_done": False}) + "\n")
    found = [located for flag in program_flags for located in _located(flag)]
    status = run_program([sys.executable, _in_clone(task.program), *found])
    if status in _ASKED_TO_END:
        raise Terminated(f"{task.name}: {task.program} was stopped; the same command goes on")
    if status:
        raise UserError(f"{task.program} ended with status {status}")
    files.write_text(note, json.dumps(now) + "\n")


def _digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_program(command):
    """Returns the status of a program.

    The program is in a session of its own. So the terminal's interrupt, like the signals of
    `endings`, comes to this process alone, which asks the program to end and waits until it has
    saved. After a second interrupt it does not wait.

    Raises:
      Terminated, KeyboardInterrupt: this process was asked to end; the program has ended.
    """
    asked, running = [], []

    def end(name):
        asked.append(name)
        for process in running:
            process.terminate()

    def interrupt(number, frame):
        if _INTERRUPT in asked:
            for process in running:
                process.kill()
        else:
            end(_INTERRUPT)

    with endings.asked(end):
        before = signal.signal(signal.SIGINT, interrupt)
        try:
            running.append(subprocess.Popen(command, start_new_session=True))
            if asked:  # while it was being started
                running[0].terminate()
            status = running[0].wait()
        finally:
            signal.signal(signal.SIGINT, before)
    if _INTERRUPT in asked:
        raise KeyboardInterrupt
    if asked:
        raise Terminated(f"stopped by {asked[0]}; the same command goes on")
    return status


def has_checkpoint(run_dir):
    """Whether a program would go on from a checkpoint in the folder of one or several runs."""
    return any(pathlib.Path(run_dir).rglob("model.ckpt-*.index"))


def require_same(run_dir, before, now):
    """Raises a `UserError` if a run was made with other flags or files that change its training.

    Args:
      run_dir: the run's folder.
      before, now: the contents of its note; {}: there is none.
    """
    before_flags, flags = before.get("flags", []), now["flags"]
    then, here = (
        [flag for flag in some if flag not in others and not flag.startswith(_PREDICTING)]
        for some, others in ((before_flags, flags), (flags, before_flags))
    )
    mend = "pass another --output_dir, or delete that folder"
    if then or here:
        told = [" ".join(flags) or "not given" for flags in (then, here)]
        raise UserError(
            f"{run_dir} has a run with other flags, which would go on with its old weights (then "
            f"{told[0]}, now {told[1]}); {mend}"
        )
    for path, digest in now["files"].items():
        if before.get("files", now["files"]).get(path) != digest:
            raise UserError(f"{run_dir} has a run on another content of {path}; {mend}")


if __name__ == "__main__":
    main()
