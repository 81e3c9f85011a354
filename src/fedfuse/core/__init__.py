"""The nouns every layer shares: errors, randomness, weights, messages. Imports nothing else of fedfuse."""
