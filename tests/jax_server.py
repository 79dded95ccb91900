"""Runs the checks of jax_checks.py in one process on JAX, in which there is no TensorFlow.

A request is a JSON line, (name of a check, arguments). The answer is null, or what failed as text.
"""

import json
import os
import sys
import traceback


class HiddenTensorFlow:
    """An importer that refuses TensorFlow."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text"):
            raise ImportError(f"{name} is hidden")


def failure_of(check, arguments):
    try:
        check(*arguments)
    except Exception:
        return traceback.format_exc()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that nothing else is taken for an answer
    sys.meta_path.insert(0, HiddenTensorFlow())
    import jax_checks

    for line in sys.stdin:
        name, arguments = json.loads(line)
        failure = failure_of(getattr(jax_checks, name), arguments)
        print(json.dumps(failure), file=answers, flush=True)
