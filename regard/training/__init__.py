"""Batches -> weights: loss, optimiser, schedule, averaging, checkpoints, the loop and the run around it.

`run.py` is where a person enters; `loop.py` is where the time goes.
"""
