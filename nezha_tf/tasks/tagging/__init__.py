"""Named entities: predicts a tag for each piece, and finds the entities' exact characters."""
