#!/usr/bin/env python3
"""Where AMD's matrix instruction calculator sees every element, as digests.

    git clone https://github.com/ROCm/amd_matrix_instruction_calculator   # 2ef91896bcdc, version 1.3.2
    pip install -r requirements.txt tabulate
    python layouts.py amd_matrix_instruction_calculator > layouts.txt

A line of the output: form, matrix (K are the indices of SMFMAC), cbsz, abid, blgp, and the first 8 bytes of BLAKE3 over the places of
the elements in the order block, row, column, each as "register.lane.lowest bit.bits" and a line feed.
"""

import contextlib
import io
import pathlib
import re
import sys

import blake3

sys.path.insert(0, sys.argv[1])
import matrix_calculator  # noqa: E402

PLACE = re.compile(r"v(?:(\d+)|\[(\d+):(\d+)\])\{(\d+)\}(?:\.\[(\d+):(\d+)\])?")


def calculator(*arguments):
    sys.argv = ["matrix_calculator.py", "-a", "cdna3", *arguments]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        matrix_calculator.parse_and_run()
    return output.getvalue()


def place(text):
    register, last, first, lane, high, low = PLACE.fullmatch(text.strip()).groups()
    if register is None:
        return f"{first}.{lane}.0.{32 * (int(last) - int(first) + 1)}"
    if high is None:
        return f"{register}.{lane}.0.32"
    return f"{register}.{lane}.{low}.{int(high) - int(low) + 1}"


def digest(form, matrix, cbsz, abid, blgp):
    modifiers = [word for name, value in (("cbsz", cbsz), ("abid", abid), ("blgp", blgp)) if value for word in (f"--{name}", str(value))]
    option = "-k" if matrix == "K" else "-" + matrix
    blocks, current = {}, None
    for line in calculator("-i", form, "-R", option, "-c", *modifiers).splitlines():
        if match := re.fullmatch(r"Blocks? ([\d, ]+)", line):
            current = []
            for block in match[1].split(","):
                blocks[int(block)] = current
        elif current is not None and line[:1].isdigit():
            current += [place(text) + "\n" for text in line.split(",")[1:]]
    text = "".join("".join(blocks[block]) for block in sorted(blocks))
    return blake3.blake3(text.encode()).hexdigest()[:16]


def main():
    for line in (pathlib.Path(__file__).parent / "mnemonics.txt").read_text().splitlines():
        form = line.split()[0]
        detail = calculator("-i", form, "-d")
        flag = lambda name: re.search(rf"{name}: (True|False)", detail)[1] == "True"  # noqa: E731
        blocks = int(re.search(r"blocks: (\d+)", detail)[1])
        sparse = flag("Sparse A matrix")
        cases = [("A", 0, 0, 0), ("B", 0, 0, 0), ("D", 0, 0, 0)]
        if sparse:
            sets = 2 if form.rsplit("_", 1)[1] in ("i8", "fp8", "bf8") else 4
            cases += [("K", 0, abid, 0) for abid in range(sets)] + [("K", 1, sets - 1, 0)]
        else:
            cases.append(("C", 0, 0, 0))
            if flag("CBSZ and ABID bits supported"):
                cases += [("A", cbsz, abid, 0) for cbsz in range(1, blocks.bit_length()) for abid in range(2**cbsz)]
            if flag("BLGP bits supported") and not form.startswith("v_mfma_f64"):
                cases += [("B", 0, 0, blgp) for blgp in range(1, 8)]
        for case in cases:
            print(form, *case, digest(form, *case), flush=True)


if __name__ == "__main__":
    main()
