"""Named entities: predicts a tag for each token, and finds the entities' exact characters."""
