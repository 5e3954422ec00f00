"""Code2wav, the codec of Qwen3-Omni: codes to 24 kHz sound, 80 ms a frame. Needs torch.

Source:
    ``Qwen3OmniMoeCode2Wav`` of transformers and the checkpoints of Qwen3-Omni; its ConvNeXt blocks
    are those of Liu et al. (2022), its activation is Snake (Ziyin et al., 2020) with an amplitude.
"""
