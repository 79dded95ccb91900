"""Fine-tuning: what each task reads, predicts and is measured by."""
