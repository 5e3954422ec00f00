"""Images, videos and sounds by diffusion: pipelines of the library diffusers, run in slices."""
