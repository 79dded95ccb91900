"""Losses and metrics as (sum, weight); a run calls the `Loss` that it trains its objective."""
