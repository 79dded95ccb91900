"""Finds out which kind of model of the table of tasks a checkpoint contains."""

from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.task_row import Head, Kind
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.config import model_types
from nezha_tf.modeling.encoder import NezhaEncoder

POOLER, LAYER_MIX = "bert/pooler/", "layer_mix/"
ENCODER = Kind("encoder", NezhaEncoder, (), "Model")
# The weights of ELECTRA's checkpoint that its generator does not have.
_OF_OTHER_MODELS = ("electra/",)
# A head with more weights than this is named as a whole.
_MOST_NAMES = 8


def kinds():
    """Returns a dict of name to `Kind`: the kinds of all tasks, and the bare encoder."""
    return {kind.name: kind for task in TASKS.values() for kind in task.kinds} | {
        ENCODER.name: ENCODER
    }


def heads():
    """Returns the prefixes of the TF1 names of all heads' weights, a tuple of str."""
    return tuple({prefix: None for kind in kinds().values() for prefix in kind.prefixes})


def listed(names):
    """Returns the TF1 names of weights as text; of a head with many weights, their number."""
    parts = {}
    prefixes = (*heads(), *_OF_OTHER_MODELS)
    for name in names:
        head = next((prefix for prefix in prefixes if name.startswith(prefix)), name)
        parts.setdefault(head, []).append(name)
    return ", ".join(
        f"{head} ({len(own)} weights)" if len(own) > _MOST_NAMES else ", ".join(own)
        for head, own in parts.items()
    )


def kind_of(names, named=None):
    """Returns the `Kind` of a checkpoint: of the kinds with a head in it, the one with most heads.

    Args:
      names: the TF1 names of its weights.
      named: the kind that a file beside it names, in the table or not; None: no file does. It
        decides between kinds whose heads have the same names, such as taggers and classifiers.
        Without it, a checkpoint with a pooler is of a kind that reads the pooler.
    """

    def has(prefix):
        return any(name.startswith(prefix) for name in names)

    every = list(kinds().values())
    present = [
        kind
        for kind in every
        if any(map(has, _own_heads(kind, every))) or _has_several(kind, every, has)
    ]
    if named and named not in every and all(map(has, named.prefixes)):
        present.insert(0, named)
    largest = [k for k in present if not any(set(k.prefixes) < set(o.prefixes) for o in present)]
    if not largest:
        return ENCODER
    same_heads = [kind for kind in largest if kind.prefixes == largest[-1].prefixes]
    return max(
        same_heads,
        key=lambda kind: (
            kind is named,
            bool(named) and task_of(kind) == task_of(named),
            kind.reads_pooler == has(POOLER),
        ),
    )


def _own_heads(kind, every):
    """Returns the prefixes of a kind's heads that no kind with fewer heads has."""
    smaller = [other for other in every if set(other.prefixes) < set(kind.prefixes)]
    return set(kind.prefixes).difference(*(other.prefixes for other in smaller))


def _has_several(kind, every, has):
    """Whether the heads of several smaller kinds are there, which only this one has together."""
    parts = [set(other.prefixes) for other in every if set(other.prefixes) < set(kind.prefixes)]
    parts = [prefixes for prefixes in parts if all(map(has, prefixes))]
    return bool(parts) and set().union(*parts) not in parts


def kind_of_settings(settings, config):
    """Returns the `Kind` of a model with these settings, a dict, in its `task.json`.

    A class of model that no row of the table has, such as that of a mixture of objectives, is a
    kind with the heads of the classes that it is made of, and with its own. That the `NezhaConfig`
    does not fit the settings, or that these name unknown objectives, is a `UserError`.
    """
    row = TASKS[settings["task"]]
    if row.model_class is None:
        return row.kind(settings)
    model_class = row.model_class(settings)
    parts = [kind for kind in kinds().values() if issubclass(model_class, kind.model_class)]
    for kind in parts:
        if kind.model_class is model_class:
            return kind
    own_heads = {head.prefix: head for kind in parts for head in kind.heads}
    for name in tf1_names(model_class(config)):
        if not name.startswith(("bert/", *own_heads)):
            prefix = "".join(name.partition("/")[:2])
            own_heads[prefix] = Head(prefix, {})
    return Kind(model_class.__name__, model_class, tuple(own_heads.values()))


def kind_of_architecture(name):
    """Returns the `Kind` of a class of transformers by its name, or None."""
    for _, model in model_types().values():
        if name.startswith(model.name):
            name = model.architecture(name)
    for kind in kinds().values():
        if kind.architecture and name.endswith(kind.architecture):
            return kind
    return None


def task_of(kind):
    """Returns the name of the first task that has a `Kind`, or None."""
    return next((name for name, task in TASKS.items() if kind in task.kinds), None)


def form_of(task):
    """Returns the `TaskRow.form` of a task by its name; None: a model without a task."""
    return TASKS[task].form if task else "bidirectional"
