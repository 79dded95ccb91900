"""From a model folder to a SavedModel that takes raw text, and on to other runtimes."""
