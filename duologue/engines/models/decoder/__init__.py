"""Transformers of the Llama family: RMS norms, rotary positions, grouped queries, gated layers.

Talkers, code predictors and codecs of today share this shape. Rows of a step may be at different
places of different streams, each of which has a slot. Needs torch, so only runners import it.

Source:
    Touvron et al., "Llama 2" (2023), section 2.2; query and key norms as in Qwen3 (2025).
"""
