"""What every part works with: devices, resident models, batches, evaluation, and the server's view of a round."""
