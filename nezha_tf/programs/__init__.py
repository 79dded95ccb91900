"""The programs: their table, and the command `nezha_tf` that starts them by name."""
