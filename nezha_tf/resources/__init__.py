"""The sample text and vocabulary that the package ships, all of its own making."""
