"""One thread: on shared cores, threads that wait for each other by spinning take seconds."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
