"""A folder as a model: what a run leaves or a published checkpoint is, opened in one line."""

from nezha_tf.model_folder.folder import ModelFolder, load, open_folder, weights_of

__all__ = ["ModelFolder", "load", "open_folder", "weights_of"]
