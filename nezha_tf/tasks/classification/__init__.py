"""Classes of texts and of pairs of texts, one or several, and numbers for them."""
