"""Requests on their way through the stages of their pipelines."""
