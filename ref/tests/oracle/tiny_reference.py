"""Tiny decoders that diffusers has no class for, in plain PyTorch: TAEF2 (group
norm pool in the first stage) and TAESANA (32 pixels per latent cell).

Written from the layer lists in the specification (clause M5), not from the
C sources: modules carry the original numbering, so a file in the original key
layout loads strictly.

SPDX-License-Identifier: MIT
"""
import torch
import torch.nn as nn


class SoftClamp(nn.Module):
    def forward(self, x):
        return 3 * torch.tanh(x / 3)


class Residual(nn.Module):
    """relu(x + conv(relu(conv(relu(conv(x)))))), after an optional x += pool(x)."""

    def __init__(self, width, pooled):
        super().__init__()
        self.conv = nn.Sequential()
        for index in (0, 2, 4):
            self.conv.add_module(str(index), nn.Conv2d(width, width, 3, padding=1))
            if index < 4:
                self.conv.add_module(str(index + 1), nn.ReLU())
        if pooled:
            inner = 4 * width
            self.pool = nn.Sequential(
                nn.Conv2d(width, inner, 1, bias=False), nn.GroupNorm(4, inner), nn.ReLU(),
                nn.Conv2d(inner, width, 1, bias=False))

    def forward(self, x):
        if hasattr(self, "pool"):
            x = x + self.pool(x)
        return torch.relu(x + self.conv(x))


def decoder(latent_channels, widths, pooled):
    """widths: of each stage; all but the last have three blocks and double the
    picture, the last has one block and ends in RGB. pooled: in the first stage."""
    layers = [SoftClamp(), nn.Conv2d(latent_channels, widths[0], 3, padding=1), nn.ReLU()]
    for i, width in enumerate(widths[:-1]):
        layers += [Residual(width, pooled and i == 0) for _ in range(3)]
        layers += [nn.Upsample(scale_factor=2), nn.Conv2d(width, widths[i + 1], 3, padding=1, bias=False)]
    layers += [Residual(widths[-1], False), nn.Conv2d(widths[-1], 3, 3, padding=1)]
    return nn.Sequential(*layers)
