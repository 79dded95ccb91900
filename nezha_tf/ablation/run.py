"""Runs an ablation: its jobs, then the table and the picture of what they came to."""

import json
import os

from nezha_tf.ablation import plan, results
from nezha_tf.ablation.jobs import Runner, check
from nezha_tf.pictures import scores as picture
from nezha_tf.util import console, files, locks, storage
from nezha_tf.util.errors import UserError, require_flag

TABLE_FILE, SCORES_FILE, PICTURE_FILE = "ablation.md", "ablation.json", "ablation.png"


def run(settings):
    """Runs what has not been run, and writes the table, the scores and the picture.

    Raises:
      UserError: a mistake in the file or in `AblationSettings`, before anything runs; or runs
        failed or have no results, after the others have run and the table is written.
      Terminated: the process was asked to end; see `endings`.
    """
    folder = require_flag(settings.output_dir, "output_dir")
    if storage.is_remote(folder):
        raise UserError(f"--output_dir={folder} is not on this machine; name a folder here")
    files.require_folder(folder, "output_dir")
    folder = os.path.normpath(folder)  # It is part of flags that a later call compares.
    results.require_libraries()
    ablation = plan.read(settings)
    jobs = plan.jobs_of(ablation, folder)
    ablation, jobs = plan.narrowed(ablation, jobs, settings.settings)
    different = list({job.name: job for job in jobs.values()}.values())
    with locks.held(os.path.join(folder, "ablation.lock"), folder):
        runner = Runner(folder, settings.num_jobs)
        left = [job for job in different if not runner.is_done(job)]
        check(_with_first_seed(jobs, left))
        done = f", {len(different) - len(left)} of them done before" if left != different else ""
        console.tell(f"{console.plural(len(different), 'run')}{done}", flush=True)
        failures = runner.run(different)
        outcome = results.scores_of(ablation, jobs, folder, runner.is_done)
        _conclude(outcome.scores, folder)
    failures |= outcome.faults
    if failures:
        lines = "; ".join(f"{name}: {line}" for name, line in failures.items())
        raise UserError(f"{console.plural(len(failures), 'run')} failed: {lines}")
    if outcome.lacking:
        raise UserError(outcome.lacking[0])


def _with_first_seed(jobs, left):
    """Returns a job of each setting and stage, of those that are left."""
    first = {}
    for (setting, stage, _), job in jobs.items():
        if job in left:
            first.setdefault((setting, stage), job)
    return list(dict.fromkeys(first.values()))


def _conclude(scores, folder):
    if not scores:
        return
    text = results.tables(scores)
    files.write_text(os.path.join(folder, TABLE_FILE), text)
    content = json.dumps(results.to_json(scores), indent=2, ensure_ascii=False)
    files.write_text(os.path.join(folder, SCORES_FILE), content + "\n")
    path = os.path.join(folder, PICTURE_FILE)
    with files.whole_file(path) as temporary:
        picture.draw(scores).savefig(temporary, dpi=120, format="png")
    console.tell(f"\n{text}\ntables and picture in {folder}: {TABLE_FILE}, {PICTURE_FILE}")
