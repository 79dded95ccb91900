"""Named entities: a tag for each piece, and entities on the exact characters of the text."""
