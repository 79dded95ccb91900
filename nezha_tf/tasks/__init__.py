"""The tasks, pretraining among them: what each one reads, predicts and is measured by."""
