"""Classification of texts and pairs of texts (one or several classes), and regression."""
