"""What is hidden from the model in its examples, and what stands in the place of it."""
