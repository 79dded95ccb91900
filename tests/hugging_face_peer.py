"""Models of transformers with random weights, as it saves them, and their outputs.

`python tests/hugging_face_peer.py` writes tests/golden/hugging_face_*; it needs the extra
[transformers].
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from waiting import TIME_LIMIT

needs_transformers = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")),
    reason="torch and transformers are not installed: pip install -e '.[transformers]'",
)
GOLDEN = pathlib.Path(__file__).parent / "golden"
SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}
# By model_type: the class with the most heads that we also have.
KINDS = {
    "nezha": "NezhaForPreTraining",
    "bert": "BertForPreTraining",
    "roformer": "RoFormerForMaskedLM",
    "albert": "AlbertForPreTraining",
    "electra": "ElectraForMaskedLM",
}
# The other model of ELECTRA, whose embeddings the one above shares.
DISCRIMINATOR = "electra_discriminator"
# Those that are read here as one of these: no golden model has their names.
READ_AS_ANOTHER = {"ernie": "ErnieForPreTraining"}
# Further sizes of a kind.
OWN_SIZES = {
    "albert": {"num_hidden_layers": 4, "num_hidden_groups": 2, "embedding_size": 6},
    "electra": {"embedding_size": 16, "hidden_size": 8, "intermediate_size": 12},
    DISCRIMINATOR: {"embedding_size": 16},
}
LENGTH = 200  # NEZHA distinguishes 129 distances


def write_peer(kind, folder, seed, hidden_act="gelu", sizes=None, **options):
    """Saves a model for pretraining and the results of a forward pass.

    Args:
      kind: a key of `KINDS` or `READ_AS_ANOTHER`, or `DISCRIMINATOR`.
      folder: a `pathlib.Path`, which gets `config.json`, the weights and `forward.npz`.
      seed: seed of the weights and of the inputs.
      hidden_act: transformers' name of the activation.
      sizes: dict of sizes instead of those of `OWN_SIZES`.
      **options: options of `save_pretrained`.
    """
    os.environ["USE_TF"] = "0"
    import torch
    import transformers

    torch.manual_seed(seed)
    classes = KINDS | READ_AS_ANOTHER
    model_class = getattr(transformers, classes.get(kind, "ElectraForPreTraining"))
    sizes = {**SIZES, **(OWN_SIZES.get(kind, {}) if sizes is None else sizes)}
    model = model_class(model_class.config_class(**sizes, hidden_act=hidden_act)).eval()
    with torch.no_grad():
        # Their initial zeros and ones would hide that weights are confused with one another.
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape))
    shared = folder.parent / f"hugging_face_{DISCRIMINATOR}"
    if kind == "electra" and shared.exists():
        other = transformers.ElectraForPreTraining.from_pretrained(shared)
        model.electra.embeddings.load_state_dict(other.electra.embeddings.state_dict())
    model.save_pretrained(folder, **options)
    inputs = random_inputs(seed)
    with torch.no_grad():
        outputs = model(
            **{name: torch.tensor(value) for name, value in inputs.items()},
            output_hidden_states=True,
        )
        body = model.base_model(**{n: torch.tensor(v) for n, v in inputs.items()})
    figures = {
        "sequence_output": outputs.hidden_states[-1],
        "embedding_output": outputs.hidden_states[0],
        "pooled_output": body.get("pooler_output"),
        "masked_lm_logits": outputs.get("prediction_logits", outputs.get("logits"))[:, ::20],
        "next_sentence_logits": outputs.get("seq_relationship_logits", outputs.get("sop_logits")),
    }
    if kind == DISCRIMINATOR:
        del figures["masked_lm_logits"]
        figures["replaced_token_logits"] = outputs["logits"]
    np.savez_compressed(
        folder / "forward.npz",
        **{name: value.numpy() for name, value in figures.items() if value is not None},
        **{f"in.{name}": value for name, value in inputs.items()},
    )


def random_inputs(seed):
    """Returns a batch with transformers' names: int64 [3, 200], two examples are padded."""
    rng = np.random.default_rng(seed)
    shape = (3, LENGTH)
    return {
        "input_ids": rng.integers(0, SIZES["vocab_size"], shape),
        "attention_mask": (np.arange(LENGTH) < np.array([[LENGTH], [150], [7]])).astype("int64"),
        "token_type_ids": rng.integers(0, 2, shape),
    }


def spelt(tf1_name, old):
    """Returns the name of a weight in transformers' models, from the parts of TF1's name."""
    irregular = {
        "cls/predictions/output_bias": "cls.predictions.bias",
        "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
        "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    }
    if tf1_name in irregular:
        return irregular[tf1_name]
    last = {"kernel": "weight", "gamma": "gamma" if old else "weight"}
    last["beta"] = "beta" if old else "bias"
    words = tf1_name.replace("layer_", "layer/").split("/")
    words[-1] = last.get(words[-1], words[-1])
    words += ["weight"] * words[-1].endswith("_embeddings")
    return ".".join(words)


def weights_of(name, old=False, prefix="bert."):
    """Returns the weights of a golden model in the layout of transformers."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(GOLDEN / name / "model.ckpt"))
    weights = {}
    for variable in reader.get_variable_to_shape_map():
        if variable == "global_step" or variable.endswith(("_m", "_v")):
            continue
        value = reader.get_tensor(variable)
        value = np.ascontiguousarray(value.T) if variable.endswith("/kernel") else value
        weights[spelt(variable, old).replace("bert.", prefix)] = value
    return weights


def write_peer_anew(kind, folder, *arguments, **options):
    """Calls `write_peer` in a new process: TensorFlow conflicts with PyTorch's compiler."""
    request = json.dumps([kind, str(folder), *arguments])
    command = [sys.executable, __file__, request, json.dumps(options)]
    subprocess.run(command, check=True, timeout=TIME_LIMIT)


if __name__ == "__main__" and len(sys.argv) > 1:
    kind, folder, *arguments = json.loads(sys.argv[1])
    write_peer(kind, pathlib.Path(folder), *arguments, **json.loads(sys.argv[2]))
elif __name__ == "__main__":
    for kind in (DISCRIMINATOR, *KINDS):
        folder = GOLDEN / f"hugging_face_{kind}"
        write_peer(kind, folder, seed=0)
        (folder / "generation_config.json").unlink(missing_ok=True)
