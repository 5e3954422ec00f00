"""Policies of models: the contract, the registry, and one folder per model."""
