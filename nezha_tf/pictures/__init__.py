"""Pictures that explain a model; they need the extra [plot]."""

# What tools/visualize.py draws.
PICTURES = ("relative_positions", "attention_masks", "attention")
