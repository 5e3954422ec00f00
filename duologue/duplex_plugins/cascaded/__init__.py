"""The cascaded plugin: what the person said -> a language model -> a synthesiser."""
