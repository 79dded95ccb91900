"""Records of runs: what is told of a run, to its own log and to the classes of --record."""

import importlib

from nezha_tf.util import console
from nezha_tf.util.errors import UserError, first_line

_METHODS = ("start", "scalars", "end")


class Record:
    """What is told of a run. A class of --record has these methods, with or without this base.

    An object is made without arguments when the flags are checked, and another one for each run
    (each member of a sweep is a run). Making one must cost little; a `UserError` then ends the
    program, as when a library is missing. Only the chief of several workers makes records.

    The methods are called between the steps, so a slow one makes the run slow. What a method of
    --record raises does not end the run: it is told in a line, and from then on only `end` is
    called, or nothing if it was `start`.
    """

    def start(self, folder, flags, step):
        """Is called once the run is known to begin, or to go on.

        Args:
          folder: the run's --output_dir. What a record writes there it finds when the run goes on.
          flags: dict of name to value of the flags that have a value and affect training: bool,
            int, float, str, or a tuple of str.
          step: the step from which training goes on, 0 if it begins; None: nothing is trained, but
            the model is evaluated or predicts. Later steps may have been told before, by a run that
            was killed; they come again.
        """

    def scalars(self, step, values):
        """Is called for each entry of the log.

        Args:
          step: number of updates made.
          values: dict of name to number; those of an evaluation are called `eval_NAME`.
        """

    def end(self, results, error):
        """Is called when the run ends in any way but a kill.

        Args:
          results: dict of "train NAME", "eval NAME", "predict NAME" to number; {} after an error.
          error: None, or the exception that ended the run: a `Terminated` if a signal stopped it,
            so that the same command goes on.
        """


class Records(Record):
    """Tells the records of a run; as a context manager it ends them.

    Attributes:
      results: see `Record.end`; to be set within the block.
    """

    def __init__(self, records):
        """Args:
        records: list of `Record`, told in this order, and ended in the opposite one.
        """
        self._records = records
        self.results = {}

    def start(self, folder, flags, step):
        for record in self._records:
            record.start(folder, flags, step)

    def scalars(self, step, values):
        for record in self._records:
            record.scalars(step, values)

    def end(self, results, error):
        # The log comes last: writing its end may fail, what --record names is guarded.
        for record in reversed(self._records):
            record.end(results, error)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.end(self.results, error)


def made(names):
    """Returns a list with a `Record` of each class that --record names as MODULE:CLASS.

    Raises:
      UserError: there is no such class, it lacks a method, or it cannot be made.
    """
    return [_Guarded(name, _object(name)) for name in names]


class _Guarded(Record):
    """A record whose exceptions become lines."""

    def __init__(self, name, record):
        self._name, self._record = name, record
        self._has_started = self._is_told = False

    def start(self, folder, flags, step):
        self._has_started = self._is_told = self._tell("start", folder, dict(flags), step)

    def scalars(self, step, values):
        self._is_told = self._is_told and self._tell("scalars", step, dict(values))

    def end(self, results, error):
        if self._has_started:
            self._tell("end", dict(results), error)

    def _tell(self, method, *arguments):
        """Returns whether the call of a method went well."""
        try:
            getattr(self._record, method)(*arguments)
        except Exception as error:  # It may raise anything.
            console.say(
                f"warning: --record={self._name} failed in {method}: {_told(error)}; the run goes "
                "on without it"
            )
            return False
        return True


def _object(name):
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise UserError(
            f"--record={name} must be MODULE:CLASS, such as nezha_tf.training.trackers:MLflow"
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # A module may raise anything.
        raise UserError(
            f"--record={name} cannot be imported: {_told(error)}; its module must be installed or "
            "in a folder of PYTHONPATH"
        ) from error
    lacking = [method for method in _METHODS if not callable(getattr(found, method, None))]
    if lacking or not isinstance(found, type):
        what = f"a class without {' and '.join(lacking)}" if lacking else "no class"
        raise UserError(
            f"--record={name} is {what}; see nezha_tf.training.records.Record for what it must have"
        )
    try:
        return found()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"--record={name} cannot be made: {_told(error)}") from error


def _told(error):
    return f"{type(error).__name__}: {first_line(error)}"
