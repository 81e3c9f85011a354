"""The slots of a method, a folder each, and what a part is shown when it is its turn.

In the field's words: start is initialisation, protocol the communication protocol, upload compression, clipping and
noise of what clients send, scores teacher weighting, local the client's objective, screen client filtering and robust
aggregation, merge aggregation and the server optimizer, fuse server-side knowledge distillation. What other frameworks
call a strategy is all of these together, a recipe.
"""
