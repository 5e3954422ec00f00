"""The engine: requests pass the stages of pipelines, and stages run models in workers."""
