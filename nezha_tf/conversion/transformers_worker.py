"""Runs a model with Hugging Face's code, in a process of its own: `python transformers_worker.py`.

It imports nothing of this project: tensorflow and PyTorch's compiler do not go into one process.
What it reads and writes is in one folder; see `transformers_peer`.
"""

import json
import os
import sys

import numpy as np


def main(folder):
    """Reads `request.json`, `inputs.npz` and maybe `tensors.npz`; writes `answer.json`, `.npz`."""
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


def run(folder, class_name, config, model_folder, outputs):
    """Computes and writes the outputs.

    Args:
      folder: as of `main`.
      class_name: of transformers.
      config: dict, what its `config.json` holds.
      model_folder: to read the model from; None: it is made of `tensors.npz`.
      outputs: dict of our names to those of its output.

    Returns:
      {}, where all went well.
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
        whole = model(**inputs)
    found = {
        "sequence_output": body.last_hidden_state,
        "pooled_output": getattr(body, "pooler_output", None),
    }
    found |= {ours: getattr(whole, theirs) for ours, theirs in outputs.items()}
    if "masked_lm_logits" in found:
        found["masked_lm_logits"] = found["masked_lm_logits"][:, places]
    arrays = {name: value.numpy() for name, value in found.items() if value is not None}
    np.savez(os.path.join(folder, "answer.npz"), **arrays)
    return {}


if __name__ == "__main__":
    main(sys.argv[1])
