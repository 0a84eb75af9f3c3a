"""`umpc train`: a linear model by private gradients of a pairwise loss.

| file | what it is |
|---|---|
| `command.py` | the command |
| `command_run.py` | its run as the coordinator, and its public table |
| `demo.py` | its demo: a table split over processes on this machine |
| `trainfile.py` | a training as people write it: train.toml |
| `descent.py` | gradient descent on released vectors, and the AUC of a model |
| `training.py` | one study after the other, and the model |
"""
