"""Published models with heads, and ELECTRA, open as they are, or one line says why not."""

import pytest
from published_heads import CLASSIFIER, READER, ROWS, TAGGER, folder_of

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.serving.export import serving_of
from nezha_tf.serving.signature import Servable
from nezha_tf.util.errors import UserError

# Of each kind of model one is made, which takes most of the time.
MADE = {(row.opens, row.config["model_type"], bool(row.refused)): row.name for row in ROWS}
TASKS = {TAGGER: "tagging", CLASSIFIER: "classification", READER: "reading_comprehension"}


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_published_model_opens(tmp_path, capsys, row):
    """Each of the weights of one of its kind is read, and nothing is told."""
    weights = folder_of(row, tmp_path)
    folder = open_folder(tmp_path)
    assert folder.task["task"] == TASKS.get(row.opens)
    labels = row.labels or (["LABEL_0", "LABEL_1"] if row.opens == TAGGER else [])
    assert folder.task.get("labels", []) == labels
    assert (folder.config.hidden_act, folder.config.pooler_act) == (
        "gelu_erf",
        "gelu_erf" if row.config["model_type"] == "electra" else "tanh",
    )
    if row.name not in MADE.values():
        return
    model = folder.make_model()
    assert type(model).__name__ == row.opens
    found = {name: variable.numpy() for name, variable in tf1_names(model).items()}
    for name in weights:
        values = weights[name]
        assert any(
            other.shape == values.T.shape and (other == values.T).all()
            for other in (*found.values(), *(value.T for value in found.values()))
        ), name
    assert capsys.readouterr().err == ""
    if row.opens == TAGGER:
        folder.tokenizer  # noqa: B018
        if not row.refused:
            _, serving = serving_of(folder)
            found = Servable(serving.signatures(), serving)(text="李白在长安。")
            spans = zip(found["start"], found["end"], found["entity"], strict=True)
            assert all("李白在长安。"[start:end] == text for start, end, text in spans)
            return
        with pytest.raises(UserError, match=row.refused) as error:
            serving_of(folder)
        assert "\n" not in str(error.value)
