"""Training objectives: losses and metrics as (sum, weight)."""
