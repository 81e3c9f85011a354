"""Pictures that the papers have and runs do not: what models say, mixtures of models, trends."""
