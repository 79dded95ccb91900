"""Which kind of model a checkpoint holds, of those in the table of tasks."""

from nezha_tf.model_folder.task_row import Kind
from nezha_tf.model_folder.task_table import TASKS
from nezha_tf.modeling.encoder import NezhaEncoder

POOLER = "bert/pooler/"
ENCODER = Kind("encoder", NezhaEncoder, (), "Model")


def kinds():
    """Returns dict of name to each `Kind` of a model: those of the tasks, and the bare encoder."""
    return {kind.name: kind for task in TASKS.values() for kind in task.kinds} | {
        ENCODER.name: ENCODER
    }


def heads():
    """Returns how the TF1 names of all heads' weights begin, a tuple of str."""
    return tuple({prefix: None for kind in kinds().values() for prefix in kind.prefixes})


def kind_of(names, said=None):
    """Returns the `Kind` of a checkpoint: of those that it has a head of, the one with most heads.

    Args:
      names: the TF1 names of its weights.
      said: the kind that a file beside it says, or None. It tells kinds whose heads have the same
        names, as taggers and classifiers do. Without it a checkpoint with a pooler is of a kind
        that reads it.
    """

    def has(prefix):
        return any(name.startswith(prefix) for name in names)

    every = list(kinds().values())
    found = [kind for kind in every if any(map(has, _own_heads(kind, every)))]
    largest = [k for k in found if not any(set(k.prefixes) < set(o.prefixes) for o in found)]
    if not largest:
        return ENCODER
    alike = [kind for kind in largest if kind.prefixes == largest[-1].prefixes]
    for is_meant in (
        lambda kind: kind is said,
        lambda kind: said and task_of(kind) == task_of(said),
        lambda kind: kind.reads_pooler == has(POOLER),
    ):
        meant = list(filter(is_meant, alike))
        if meant:
            return meant[0]
    return alike[0]


def _own_heads(kind, every):
    """Returns the prefixes of the heads that no kind of fewer heads has."""
    smaller = [other for other in every if set(other.prefixes) < set(kind.prefixes)]
    return set(kind.prefixes).difference(*(other.prefixes for other in smaller))


def kind_of_architecture(name):
    """Returns the `Kind` of a class of transformers, by its name; None where there is none."""
    for kind in kinds().values():
        if kind.architecture and name.endswith(kind.architecture):
            return kind
    return None


def task_of(kind):
    """Returns the name of the first task that has a `Kind`, or None."""
    return next((name for name, task in TASKS.items() if kind in task.kinds), None)


def form_of(task):
    """Returns the `Task.form` of a task by its name, or of None, a model of no task."""
    return TASKS[task].form if task else "bidirectional"
