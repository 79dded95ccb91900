"""From raw text to answers: signatures, exports as SavedModels, other runtimes, and the page."""
