"""What all rooms use: errors, files, the console, settings and their flags."""
