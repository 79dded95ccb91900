"""Makes vectors with sentence-transformers, in a process of its own.

TensorFlow conflicts with PyTorch's compiler. `python tests/sentence_transformers_peer.py REQUEST`
is started by `vectors_of`, and may be started by another Python that has another version.
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

needs_sentence_transformers = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="sentence-transformers is not installed; 3.0.1 fits transformers 4.40.2",
)


def vectors_of(folder, texts, **saved):
    """Returns the library's vectors of texts, float32 [texts, D].

    Args:
      folder: one of its folders; or with `saved`, one of transformers.
      texts: list of str.
      **saved: `to`, a folder in which the library saves the model with the further ones: `pooling`,
        by its name of it, `max_seq_length`, and whether to `normalize`.
    """
    request = {"folder": str(folder), "texts": texts, "saved": saved}
    path = pathlib.Path(saved.get("to", folder)).with_suffix(".npy")
    command = [sys.executable, __file__, json.dumps({**request, "path": str(path)})]
    # The library asks a hub for the base of what it saves; transformers would load TensorFlow.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "USE_TF": "0"}
    subprocess.run(command, check=True, timeout=TIME_LIMIT, env=environment)
    return np.load(path)


def _run(folder, texts, saved, path):
    from sentence_transformers import SentenceTransformer, models

    if saved:
        transformer = models.Transformer(folder, max_seq_length=saved["max_seq_length"])
        width = transformer.auto_model.config.hidden_size
        modules = [transformer, models.Pooling(width, pooling_mode=saved["pooling"])]
        modules += [models.Normalize()] * saved["normalize"]
        SentenceTransformer(modules=modules, device="cpu").save(saved["to"])
        folder = saved["to"]
    np.save(path, SentenceTransformer(folder, device="cpu").encode(texts))


if __name__ == "__main__":
    _run(**json.loads(sys.argv[1]))
