"""PersonaPlex: Moshi with a voice and a persona to choose. Everything else is ``lockstep``."""
