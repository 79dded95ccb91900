"""Multiple choice: which of several answers fits a question, or which idiom fits a blank."""
