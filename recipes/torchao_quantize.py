"""torchao's affine quantisation on a CPU; tested with torchao 0.18.0, torch 2.13.0.

    lab run lora --swap quantize=recipes/torchao_quantize.py:quantize --swap dequantize=recipes/torchao_quantize.py:dequantize
    lab run lora --swap quantize=recipes/torchao_quantize.py:full_range

torchao groups along the last axis and the lab along the first, so matrices are transposed on the way.

Found: float64 is refused; in float32 codes and scales agree. It multiplies by 1/scale, so one code of 96 turns at a tie
of the stored weight; such codes are not judged in float32, where one rounding of the scale decides. By default its scale
divides by 7.5 for 4 bits where absmax divides by 7.
"""

import torch
from torchao.quantization.quant_primitives import (
    MappingType,
    choose_qparams_affine,
    dequantize_affine,
    quantize_affine,
)

PRELOAD = ("torchao.quantization.quant_primitives",)


def quantize(w, bits, group):
    """Symmetric, with codes from -(2^(bits-1) - 1) on, as the lab has them."""
    return quantized(w, group, -(2 ** (bits - 1)) + 1, 2 ** (bits - 1) - 1)


def full_range(w, bits, group):
    """Symmetric as torchao has it by default: the scale divides by half of all codes, 7.5 for 4 bits."""
    return quantized(w, group, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def quantized(w, group, low, high):
    """Codes [d,k] and scales [d/group,k]; a group of zeros has scale eps there, which means 0 here."""
    block, eps = (1, group), torch.finfo(w.dtype).tiny
    scales, zeros = choose_qparams_affine(w.T, MappingType.SYMMETRIC, block, torch.int8, low, high, eps, w.dtype)
    codes = quantize_affine(w.T, block, scales, zeros, torch.int8, low, high)
    rows = scales.reshape(w.shape[1], -1)  # it drops the axis of a single group
    return codes.T.contiguous(), torch.where(rows <= eps, 0.0, rows).T.contiguous()


def dequantize(codes, scales, group):
    """Back to the dtype of the scales."""
    zeros = torch.zeros_like(scales.T, dtype=torch.int32)
    return dequantize_affine(codes.T, (1, group), scales.T, zeros, torch.int8, output_dtype=scales.dtype).T
