"""A trained model at work: continuing and generating text, filling blanks, scoring."""
