"""Classification with the head of masked LM: a pattern asks for a word, which means a class."""
