"""What is learnt: a model, its loss and each client's data."""
