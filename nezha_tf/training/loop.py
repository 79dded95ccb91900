"""The one training loop."""

import time

from nezha_tf.errors import UserError
from nezha_tf.training.summaries import Averages, Throughput


def train(
    step_function,
    batches,
    *,
    start_step,
    num_train_steps,
    batches_read,
    loss_scale,
    checkpoints,
    save_checkpoints_steps,
    log_steps,
    record,
    evaluate=None,
):
    """Trains until `num_train_steps` updates have been made.

    Args:
      step_function: as of `make_train_step`.
      batches: endless iterable of batches.
      start_step: updates made so far.
      num_train_steps: updates to make in all.
      batches_read: int64 `tf.Variable`, raised with each batch; part of the checkpoint.
      loss_scale: the `DynamicLossScale` of `step_function`, or None.
      checkpoints: `RunCheckpoints`.
      save_checkpoints_steps: updates between two checkpoints; the last step saves too.
      log_steps: updates between two entries of the record.
      record: `RunRecord`.
      evaluate: None, or a callable that returns a dict of name to float, called after each
        save; its values are recorded as `eval_<name>`.

    Returns:
      The last entry of the record.

    Raises:
      UserError: loss or gradient is no longer finite, and no loss scale can mend it.
    """
    step, entry = start_step, {}
    averages, throughput = Averages(), Throughput()
    started = time.monotonic()
    for batch in batches:
        result = step_function(batch)
        batches_read.assign_add(1)
        throughput.add(len(batch["input_ids"]), result.tokens)
        if not result.is_finite:
            if loss_scale is None or loss_scale.is_exhausted(result.loss):
                raise _not_finite(step, checkpoints)
            continue  # the step was skipped, and the loss scale is lower now
        averages.add(result.ratios)
        step += 1
        record.advance()
        is_last = step == num_train_steps
        saves = step % save_checkpoints_steps == 0 or is_last
        if step % log_steps == 0 or saves:
            entry = _entry(result, averages, throughput)
            record.write(step, entry)
            record.show(_brief(entry))
            averages, throughput = Averages(), Throughput()
        if saves:
            pause = time.monotonic()
            checkpoints.save(step)
            if evaluate is not None:
                found = {f"eval_{name}": value for name, value in evaluate().items()}
                record.write(step, found)
                entry = {**entry, **found}
            throughput.leave_out(time.monotonic() - pause)
            left = (time.monotonic() - started) / (step - start_step) * (num_train_steps - step)
            shown = {"step": f"{step}/{num_train_steps}", **_brief(entry)}
            shown["left"] = f"{left / 60:.1f} min"
            record.say("  ".join(f"{name} {value}" for name, value in shown.items()))
        if is_last:
            return entry
    raise ValueError("the batches ended before the training did")


def evaluate(eval_step, batches):
    """Returns the losses and metrics over all batches, as a dict of name to float.

    Args:
      eval_step: as of `make_eval_step`.
      batches: iterable of batches.
    """
    averages = Averages()
    for batch in batches:
        averages.add(eval_step(batch))
    return with_total_loss(averages.means())


def with_total_loss(values):
    """Returns the values with `loss`, the sum of those named `..._loss`."""
    total = sum(value for name, value in values.items() if name.endswith("_loss"))
    return {**values, "loss": total}


def _entry(result, averages, throughput):
    values = with_total_loss(averages.means())
    values["learning_rate"] = float(result.learning_rate)
    values["gradient_norm"] = float(result.gradient_norm)
    return {**values, **throughput.rates()}


def _brief(entry):
    """Returns an entry's values as short text: each loss with its accuracy, then the rest."""
    shown = {}
    for name in entry:
        if name.endswith("_loss") and name != "eval_loss":
            task = name.removesuffix("_loss")
            shown[task] = _loss_text(entry, task)
    shown["lr"] = f"{entry['learning_rate']:.2e}"
    shown["norm"] = f"{entry['gradient_norm']:.2f}"
    shown["ex/s"] = f"{entry['examples_per_second']:.1f}"
    shown["tok/s"] = f"{entry['tokens_per_second']:,.0f}"
    return shown


def _loss_text(entry, task):
    text = f"{entry[f'{task}_loss']:.3f}"
    accuracy = entry.get(f"{task}_accuracy")
    return text if accuracy is None else f"{text} ({accuracy:.1%})"


def _not_finite(step, checkpoints):
    steps = checkpoints.steps()
    kept = f"the last checkpoint is {checkpoints.path(steps[-1])}" if steps else "none was saved"
    return UserError(
        f"loss or gradient is not finite after step {step}; lower --learning_rate or raise "
        f"--num_warmup_steps ({kept})"
    )
