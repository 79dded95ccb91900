"""Sentence vectors: contrastive fine-tuning on texts without labels."""
