"""Models from one layout of files to another, checked by running both sides."""
