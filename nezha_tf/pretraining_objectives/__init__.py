"""The objectives of pretraining, and mixtures of them."""
