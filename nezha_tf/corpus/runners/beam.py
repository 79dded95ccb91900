"""Apache Beam: Dataflow, Flink, or Beam's own runner on this machine.

apache_beam is imported only when one of them is chosen.
"""

import contextlib
import io
import logging
import shlex

from nezha_tf.corpus.runners.work import error_of, failure
from nezha_tf.util.errors import Terminated, UserError, install_command

# Beam's own "DirectRunner" would first try to download and start a server.
_NAMES = {"DirectRunner": "apache_beam.runners.portability.fn_api_runner.fn_runner.FnApiRunner"}
# This runner passes options that Beam does not know to a Java server, which may know them.
_WITH_OPTIONS_OF_ITS_OWN = "FlinkRunner"
_FROM_A_WORKER = " [while running '"  # Beam appends this to errors of a step


class BeamRunner:
    """An engine, see `runners`; its `name` is the runner's in Beam."""

    OPTIONS = "beam_options"

    def __init__(self, name, options):
        """Raises a `UserError` if Beam or the runner is not installed, or an option is wrong."""
        self.name = name
        self._pipeline = _pipeline_of(name, options)

    def run(self, function, places):
        import apache_beam

        places = self._pipeline | "shards" >> apache_beam.Create(places, reshuffle=False)
        places | "spread" >> apache_beam.Reshuffle() | "make" >> apache_beam.Map(function)
        with _as_user_errors(self.name):
            result = self._pipeline.run()
            try:
                state = result.wait_until_finish()
            except (KeyboardInterrupt, Terminated):
                result.cancel()
                raise
        if state not in (None, "DONE"):
            raise failure(self.name, f"ended as {state}")


def _pipeline_of(runner, options):
    # Remote jobs log their address and progress; errors of a local run are raised below.
    level = logging.CRITICAL if runner == "DirectRunner" else logging.INFO
    logging.getLogger("apache_beam").setLevel(level)
    try:
        logging.disable(logging.WARNING)  # Beam warns of its parts that are not installed
        import apache_beam
        from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
    except ImportError as error:
        raise UserError(
            f"--runner={runner} needs Apache Beam ({error}): {install_command('beam')}"
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    usage = io.StringIO()
    try:
        # Beam prints a wrong option to stderr, after a page of usage.
        with contextlib.redirect_stderr(usage):
            parsed = PipelineOptions(shlex.split(options))
            known = parsed.get_all_options(retain_unknown_options=True)
            unknown = known.keys() - PipelineOptions([]).get_all_options().keys()
            if parsed.view_as(StandardOptions).runner:
                raise ValueError("name the runner by --runner, not in --beam_options")
            if unknown and runner != _WITH_OPTIONS_OF_ITS_OWN:
                raise ValueError(f"{runner} has no option {', '.join(sorted(unknown))}")
            return apache_beam.Pipeline(_NAMES.get(runner, runner), options=parsed)
    except SystemExit as end:
        message = usage.getvalue().strip().rpartition("error: ")[2]
        raise UserError(f"--beam_options={options}: {message}") from end
    except (ValueError, ImportError) as error:
        message = " ".join(str(error).split())
        raise UserError(f"--runner={runner} --beam_options={options}: {message}") from error


@contextlib.contextmanager
def _as_user_errors(runner):
    """Turns Beam's errors into `UserError`s; a defect in a worker keeps its traceback."""
    try:
        yield
    except Exception as error:
        message, from_a_worker, _ = str(error).partition(_FROM_A_WORKER)
        if isinstance(error, UserError | Terminated):  # raised by a worker of this process
            raise type(error)(message) from error
        if message == "KeyboardInterrupt":
            raise KeyboardInterrupt from error
        shown = error_of(runner, error, is_defect=bool(from_a_worker))
        if shown is error:
            raise
        raise shown from error
