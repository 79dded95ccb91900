"""Loads checkpoints of the originals and of Hugging Face by one table of names."""

from nezha_tf.checkpoints.adapter_saving import save_adapters
from nezha_tf.checkpoints.loading import load, load_tf1_checkpoint
from nezha_tf.checkpoints.tf1 import save_tf1_checkpoint

__all__ = ["load", "load_tf1_checkpoint", "save_adapters", "save_tf1_checkpoint"]
