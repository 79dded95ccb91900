"""Checkpoints of the originals: one table of names, and Saver files in and out."""

from nezha_tf.checkpoints.tf1 import load_tf1_checkpoint, save_tf1_checkpoint

__all__ = ["load_tf1_checkpoint", "save_tf1_checkpoint"]
