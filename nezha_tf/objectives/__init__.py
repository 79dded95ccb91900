"""What a batch is trained for: losses and metrics as (sum, weight)."""
