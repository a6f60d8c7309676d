"""Problems whose model is a PyTorch module. `build_torch_problem` is the way in, and needs no torch to be imported."""
