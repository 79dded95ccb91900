"""What a trained model is asked for: blanks, texts, scores, vectors."""
