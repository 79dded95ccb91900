"""Runs a model with the code of Hugging Face, in a separate process.

The program imports nothing of this project, because tensorflow and the compiler of PyTorch do not
work in the same process. It reads and writes files of one folder; see `transformers_peer`.
"""

import json
import os
import sys

import numpy as np


def main(folder):
    """Reads `request.json` and `inputs.npz`; writes `answer.json` and, of outputs, `answer.npz`."""
    with open(os.path.join(folder, "request.json"), encoding="utf-8") as file:
        request = json.load(file)
    try:
        answer = run(folder, **request)
    except (ImportError, AttributeError) as error:
        answer = {"unavailable": " ".join(str(error).split())}
    except (RuntimeError, ValueError, OSError, TypeError) as error:
        answer = {"refused": " ".join(str(error).split())}
    with open(os.path.join(folder, "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)


def run(folder, class_name, config, model_folder, outputs, has_choices):
    """Computes the outputs and writes them to `answer.npz`; returns the answer of a success.

    Args:
      class_name, config: the model's class in transformers, and the content of `config.json`.
      model_folder: path of the model's folder; None: the weights are in `tensors.npz`.
      outputs: dict of our names of the outputs to the names of transformers.
      has_choices: whether the sequences of the input are the choices of one question.
    """
    os.environ["USE_TF"] = "0"
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    model_class = getattr(transformers, class_name)
    tensors = None
    if model_folder is None:
        with np.load(os.path.join(folder, "tensors.npz")) as file:
            tensors = {name: torch.tensor(file[name]) for name in file}
    with np.load(os.path.join(folder, "inputs.npz")) as file:
        inputs = {name: torch.tensor(file[name]).long() for name in file}
    places = inputs.pop("masked_lm_positions")[0]
    model = model_class.from_pretrained(
        model_folder, config=model_class.config_class.from_dict(config), state_dict=tensors
    ).eval()
    with torch.no_grad():
        body = getattr(model, model.base_model_prefix, model)(**inputs)
        whole = model(**{n: v[None] if has_choices else v for n, v in inputs.items()})
    computed = {
        "sequence_output": body.last_hidden_state,
        "pooled_output": getattr(body, "pooler_output", None),
    }
    computed |= {ours: getattr(whole, theirs) for ours, theirs in outputs.items()}
    if "masked_lm_logits" in computed:
        computed["masked_lm_logits"] = computed["masked_lm_logits"][:, places]
    arrays = {name: value.numpy() for name, value in computed.items() if value is not None}
    np.savez(os.path.join(folder, "answer.npz"), **arrays)
    return {}


if __name__ == "__main__":
    main(sys.argv[1])
