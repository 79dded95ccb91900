"""Opens a run's folder, or the folder of a published model, as a model."""

from nezha_tf.model_folder.folder import ModelFolder, load, open_folder, weights_of

__all__ = ["ModelFolder", "load", "open_folder", "weights_of"]
