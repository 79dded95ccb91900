"""Converting a model from one layout to another: read, checked, written, compared."""

import dataclasses
import os

from nezha_tf import console, files
from nezha_tf.conversion import comparison, layouts
from nezha_tf.conversion.source import open_source
from nezha_tf.conversion.weights import read_weights, rounded, with_segments
from nezha_tf.errors import UserError, require_flag


def convert_checkpoint(flags):
    """Converts a model by the flags of tools/convert_checkpoint.py.

    Args:
      flags: dict of their values by name.

    Returns:
      A report as text: what was converted, what was left out, and the largest differences.

    Raises:
      UserError: a model that cannot be converted, or a folder that is there; then nothing has
        been written.
    """
    target = os.path.normpath(require_flag(flags["to"], "to"))
    if os.path.lexists(target):
        raise UserError(f"--to={target} is there already; give a new folder")
    with console.progress(total=3, bar_format="{desc} ({n}/{total}, {elapsed})") as steps:
        return _convert(flags, target, steps)


def _convert(flags, target, steps):
    steps.set_description("reading")
    source = open_source(
        require_flag(flags["from"], "from"),
        flags["config_file"],
        flags["vocab_file"],
        flags["do_lower_case"],
    )
    weights = read_weights(
        source,
        averages=flags["averages"] or bool(source.task and source.task["uses_averages"]),
        drop=flags["drop"],
        allow_missing=flags["allow_missing"],
    )
    before = rounded(weights, flags["dtype"])
    after, segments = with_segments(before, source.config, flags["type_vocab_size"])
    config = source.config
    if segments:
        config = dataclasses.replace(config, type_vocab_size=flags["type_vocab_size"])
    layouts.check_format(flags["format"], after, config, flags["dtype"])
    report = _report(source, weights, flags, segments)
    try:
        with files.whole_folder(target) as folder:
            _next(steps, "writing")
            written = layouts.write(folder, flags["format"], source, after, config)
            _next(steps, "comparing")
            text = f"{report}\n{comparison.compare(source, before, config, written)}"
            files.write_text(os.path.join(folder, "README.md"), _readme(target, text))
            steps.update()
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
    return text


def _next(steps, name):
    steps.update()
    steps.set_description(name)


def _report(source, weights, flags, segments):
    parameters = sum(value.size for value in weights.values.values())
    rows = [
        ("model", f"{source.config.position_encoding}, {weights.kind.name.replace('_', ' ')}"),
        ("weights", f"{len(weights.values)} of {parameters:,} numbers, {flags['dtype']}"),
    ]
    if segments:
        rows.append(("segment rows", segments))
    for what, names in weights.left_out:
        # Of each weight there are several slots: their number says enough.
        listed = "" if what in ("optimizer slots", "moving averages") else f": {', '.join(names)}"
        rows.append((f"left out, {what}", f"{len(names)}{listed}"))
    if weights.missing:
        rows.append(("missing", f"{len(weights.missing)}: {', '.join(weights.missing)}"))
    title = f"{source.path} to {flags['to']} ({flags['format']})"
    return "\n".join([console.table(title, rows), *source.notes])


def _readme(target, text):
    name = os.path.basename(target)
    return f"# {name}\n\nMade by `tools/convert_checkpoint.py`.\n\n```\n{text}\n```\n"
