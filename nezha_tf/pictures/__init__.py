"""Pictures that explain a model, and curves of runs; they need the extra [plot]."""
