#!/usr/bin/env python3
"""Results of MMA-Sim for seeded matrices, as digests.

    pip install -r requirements.txt
    python vectors.py                             # every form: digests.txt, and samples.txt with values of block 0
    python vectors.py --show FORM BLOCK           # the results of one block, one element of D a line

The matrices come from a generator that tests/common/generate.rs has as well: an element is a function of the form's name, the
number of the instruction, the operand and the element's place. A line of the digests is a form and the digests (the first 8 bytes of
BLAKE3) of its blocks of instructions, each over the bits of D in the order instruction, block, row, column. A line of the samples is
a form and every 16th element of block 0.
"""

import argparse
import pathlib

import blake3
import numpy as np
import torch
from mmasim.amd import MFMA

BLOCKS = 48
OUTPUTS = 4096  # elements of D in a block, at least

U64 = np.uint64
FORMATS = {  # bits of the exponent, of the fraction, bias
    "f64": (11, 52, 1023),
    "f32": (8, 23, 127),
    "xf32": (8, 23, 127),
    "f16": (5, 10, 15),
    "bf16": (8, 7, 127),
    "fp8": (4, 3, 8),
    "bf8": (5, 2, 16),
}
FORMS = [
    "f64_16x16x4_f64", "f64_4x4x4_4b_f64",
    "f32_32x32x1_2b_f32", "f32_16x16x1_4b_f32", "f32_4x4x1_16b_f32", "f32_32x32x2_f32", "f32_16x16x4_f32",
    "f32_16x16x8_xf32", "f32_32x32x4_xf32",
    "f32_32x32x4_2b_f16", "f32_16x16x4_4b_f16", "f32_4x4x4_16b_f16", "f32_32x32x8_f16", "f32_16x16x16_f16",
    "f32_32x32x4_2b_bf16", "f32_16x16x4_4b_bf16", "f32_4x4x4_16b_bf16", "f32_32x32x8_bf16", "f32_16x16x16_bf16",
    "f32_16x16x32_bf8_bf8", "f32_16x16x32_bf8_fp8", "f32_16x16x32_fp8_bf8", "f32_16x16x32_fp8_fp8",
    "f32_32x32x16_bf8_bf8", "f32_32x32x16_bf8_fp8", "f32_32x32x16_fp8_bf8", "f32_32x32x16_fp8_fp8",
]  # fmt: skip


def mix(x):
    """The finaliser of SplitMix64."""
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


def seed(name):
    """FNV-1a of the form's name."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def hashes(name, instruction, operand, elements):
    key = (seed(name) + (instruction << 40) + (operand << 32)) % 2**64
    return mix((np.arange(elements, dtype=U64) + U64(key)) * U64(0x9E3779B97F4A7C15))


def assemble(kind, sign, field, fraction):
    exponent_bits, fraction_bits, _ = FORMATS[kind]
    bits = sign << U64(exponent_bits + fraction_bits) | field << U64(fraction_bits) | fraction
    if kind in ("fp8", "bf8"):  # no negative zero: 0x80 is NaN, which only a special gives
        bits = np.where(bits == U64(0x80), U64(0), bits)
    return bits


def around(h, centre, reach, last):
    """An exponent field within `reach` of `centre`, between 0 and `last`."""
    offset = (h >> U64(52)) % U64(2 * reach + 1)
    return np.clip(offset.astype(np.int64) + (centre - reach), 0, last).astype(U64)


def last_field(kind):
    """The largest exponent field of a finite number."""
    return 2 ** FORMATS[kind][0] - (1 if kind in ("fp8", "bf8") else 2)


def plain_fraction(h, mask):
    """0, the lowest bit, all bits, the highest bit."""
    choice = (h >> U64(44)) % U64(4)
    return np.select([choice == i for i in range(4)], [U64(0), U64(1), mask, (mask >> U64(1)) + U64(1)])


def special(kind, h):
    """One of 8 values at the limits of the type."""
    exponent_bits, fraction_bits, _ = FORMATS[kind]
    mask, top = U64(2**fraction_bits - 1), U64(2**exponent_bits - 1)
    sign = h >> U64(63)
    one, zero = U64(1), U64(0)
    choice = (h >> U64(40)) % U64(8)
    cases = [(zero, zero), (zero, one), (one, zero), (U64(last_field(kind)), mask), (zero, mask)]
    values = [assemble(kind, sign, *case) for case in cases]
    if kind in ("fp8", "bf8"):
        nan = np.full_like(h, 0x80)
        values += [nan, nan, nan]
    else:
        infinity = assemble(kind, sign, top, zero)
        values += [infinity, infinity, assemble(kind, sign, top, h & mask | (mask >> U64(1)) + one)]
    return np.select([choice == i for i in range(8)], values)


def operand(kind, name, instruction, which, rows, k):
    """Bits of A[row][k] or B[column][k]."""
    exponent_bits, fraction_bits, bias = FORMATS[kind]
    mask, last = U64(2**fraction_bits - 1), last_field(kind)
    profile = instruction % 8
    h = hashes(name, instruction, which, rows * k)
    own = h.copy()
    odd = (np.arange(rows * k) % k % 2 == 1) & (profile == 3)
    h[odd] = h[np.flatnonzero(odd) - 1]
    sign, fraction = h >> U64(63), h & mask
    if profile == 0:  # any finite number
        bits = assemble(kind, sign, (h >> U64(52)) % U64(last + 1), fraction)
    elif profile in (1, 2):  # near 1; with values at the limits of the type
        bits = assemble(kind, sign, around(h, bias, 2, last), fraction)
        if profile == 2:
            bits = np.where((h >> U64(32)) % U64(32) == 0, special(kind, h), bits)
    elif profile == 3:  # cancellation: pairs of products that differ in sign, and sometimes in the last bit
        bits = assemble(kind, sign, around(h, bias, 4, last), fraction)
        if which == 0:
            flipped = bits ^ (U64(1) << U64(exponent_bits + fraction_bits)) ^ (own >> U64(36)) % U64(2)
            bits = np.where(odd, flipped, bits)
            if kind in ("fp8", "bf8"):
                bits = np.where(bits == U64(0x80), U64(0), bits)
    elif profile == 4:  # denormals and zeros, or products about the smallest normal f32
        if instruction // 8 % 2 == 0:
            zero = (h >> U64(48)) % U64(4) == 0
            bits = assemble(kind, sign, (h >> U64(52)) % U64(3), fraction)
            bits = np.where(zero, assemble(kind, sign, U64(0), U64(0)), bits)
        else:
            fraction = np.where((h >> U64(24)) % U64(2) == 0, plain_fraction(h, mask), fraction)
            bits = assemble(kind, sign, around(h, bias - bias // 2 - 6, 10, last), fraction)
    elif profile == 5:  # exponents far apart
        bits = assemble(kind, sign, around(h, bias, 18, last), fraction)
    elif profile == 6:  # large
        bits = assemble(kind, sign, U64(last) - (h >> U64(52)) % U64(4), fraction)
    else:  # few bits, exponents apart
        bits = assemble(kind, sign, around(h, bias, 12, last), plain_fraction(h, mask))
    return bits


def accumulator(kind, name, instruction, elements):
    """Bits of C[row][column]."""
    _, fraction_bits, bias = FORMATS[kind]
    mask, last = U64(2**fraction_bits - 1), last_field(kind)
    h = hashes(name, instruction, 2, elements)
    sign, fraction = h >> U64(63), h & mask
    limits = np.where((h >> U64(32)) % U64(8) == 0, special(kind, mix(h)), assemble(kind, sign, around(h, bias, 2, last), fraction))
    values = [
        assemble(kind, sign, U64(0), U64(0)),
        assemble(kind, sign, around(h, bias, 2, last), fraction),
        assemble(kind, sign, (h >> U64(52)) % U64(last + 1), fraction),
        assemble(kind, sign, around(h, bias, 32, last), fraction),
        limits,
        assemble(kind, sign, (h >> U64(52)) % U64(8), fraction),
        assemble(kind, sign, around(h, bias + 6, 6, last), fraction),
        assemble(kind, sign, around(h, bias, 30, last), plain_fraction(h, mask)),
    ]
    if instruction % 16 == 12:  # products about the smallest normal f32: C mostly denormal too
        values[1:5] = [assemble(kind, sign, (h >> U64(52)) % U64(2), fraction)] * 4
    # The bits that choose are not those of the exponent, and above those of an f32's fraction.
    choice = (h >> U64(24)) % U64(8)
    return np.select([choice == i for i in range(8)], values)


def tensor(kind, bits):
    if kind == "f64":
        return torch.from_numpy(bits.view(np.int64).copy()).view(torch.float64)
    if kind in ("f32", "xf32"):
        return torch.from_numpy(bits.astype(np.uint32).view(np.int32)).view(torch.float32)
    if kind in ("f16", "bf16"):
        dtype = torch.float16 if kind == "f16" else torch.bfloat16
        return torch.from_numpy(bits.astype(np.uint16).view(np.int16)).view(dtype)
    dtype = torch.float8_e4m3fnuz if kind == "fp8" else torch.float8_e5m2fnuz
    return torch.from_numpy(bits.astype(np.uint8)).view(dtype)


NAN = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32)


class Form:
    def __init__(self, suffix):
        parts = suffix.split("_")
        self.name = "v_mfma_" + suffix
        self.m, self.n, self.k = map(int, parts[1].split("x"))
        blocks = [part for part in parts if part.endswith("b") and part[:-1].isdigit()]
        self.blocks = int(blocks[0][:-1]) if blocks else 1
        types = [part for part in parts[2:] if part in FORMATS]
        self.a, self.b, self.d = types[0], types[-1], parts[0]
        self.operation = MFMA("CDNA3", suffix)
        self.length = getattr(self.operation.arithmetic_op, "L_max", self.k)
        self.instructions = -(-OUTPUTS // (self.m * self.n * self.blocks))

    def text(self, value):
        """The bits of an element of D."""
        digits = 16 if self.d == "f64" else 8
        return f"{int(value) % 16**digits:0{digits}x}"

    def products(self, a, b, c):
        """One dot product, or for f32 and f64 the whole chain."""
        d = self.operation.dpa(a, b, c)
        if self.a in ("fp8", "bf8"):
            # MMA-Sim takes the exponent of an infinity or NaN to be -1, and drops such a C where the products reach 2^25. For all
            # other operands and forms it has that C stay what it is unless a product is NaN, and so do we.
            lost = ~c.isfinite()
            kept = c + self.operation.dpa(a, b, torch.zeros_like(c))
            d[lost] = torch.where(kept.isnan(), NAN, kept)[lost]
        return d

    def results(self, block):
        """D of the block's instructions: unsigned integers of the accumulator's width."""
        first = block * self.instructions
        a, b, c = [], [], []
        for instruction in range(first, first + self.instructions):
            a.append(operand(self.a, self.name, instruction, 0, self.blocks * self.m, self.k))
            b.append(operand(self.b, self.name, instruction, 1, self.blocks * self.n, self.k))
            c.append(accumulator(self.d, self.name, instruction, self.blocks * self.m * self.n))
        count = self.instructions * self.blocks
        a = tensor(self.a, np.concatenate(a)).view(count, self.m, 1, self.k).expand(-1, -1, self.n, -1)
        b = tensor(self.b, np.concatenate(b)).view(count, 1, self.n, self.k).expand(-1, self.m, -1, -1)
        c = tensor(self.d, np.concatenate(c)).view(count, self.m, self.n)
        d = c
        for first in range(0, self.k, self.length):
            part = slice(first, first + self.length)
            d = self.products(a[..., part], b[..., part], d)
        d = d.contiguous().flatten()
        width, nan = (torch.int64, 0x7FF8 << 48) if self.d == "f64" else (torch.int32, 0x7FC00000)
        bits = d.view(width)
        if self.a in ("f64", "f32"):
            # Chains of the host's fused multiply-add: the payload of a NaN is that of the host's CPU.
            bits[d.isnan()] = nan
        return bits.numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", nargs=2, metavar=("FORM", "BLOCK"))
    arguments = parser.parse_args()
    if arguments.show:
        form = Form(arguments.show[0].removeprefix("v_mfma_"))
        print(*(form.text(value) for value in form.results(int(arguments.show[1]))), sep="\n")
        return
    here = pathlib.Path(__file__).parent
    with open(here / "digests.txt", "w") as digests, open(here / "samples.txt", "w") as samples:
        for suffix in FORMS:
            form = Form(suffix)
            blocks = [form.results(block) for block in range(BLOCKS)]
            print(form.name, *(blake3.blake3(block.tobytes()).hexdigest()[:16] for block in blocks), file=digests)
            print(form.name, *(form.text(value) for value in blocks[0][::16]), file=samples)


if __name__ == "__main__":
    main()
