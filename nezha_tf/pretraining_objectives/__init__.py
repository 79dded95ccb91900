"""What a model is pretrained for: an object for each objective, and mixtures of them."""
