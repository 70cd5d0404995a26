#!/usr/bin/env python3
"""Encodes graphs without anything of rotini-wire: no schema, no generated code, no FlatBuffers library.

Writes NAME.fb, the bytes that a host would pass, and NAME.json, the graph that they mean in the words of rotini's own types, for each
graph below. The ids of fields and the numbers of enums are those of hipDNN's public schemas (ROCm/rocm-libraries,
projects/hipdnn/flatbuffers_sdk/schemas), written down here once more.

    encode.py DIRECTORY

`random_types.py` beside it makes random graphs with truth values and FNUZ by the same encoder.
"""

import json
import struct
import sys

# Type of a field: how many bytes it takes in its table, and how it is packed.
SCALARS = {"u8": "<B", "i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}

TYPES = {
    name: number
    for number, name in enumerate(
        "F32 F16 Bf16 F64 U8 I32 I8 F8E4M3 F8E5M2 F8E8M0 F4E2M1 F6E2M3 F6E3M2 I4 I64 Bool F8E4M3Fnuz F8E5M2Fnuz".split(), 1
    )
}
MODES = {
    "ConvMode": {"Convolution": 1, "CrossCorrelation": 2},
    "NormPhase": {"Inference": 1, "Training": 2},
    "ReductionMode": {"Add": 1, "Mul": 2, "Min": 3, "Max": 4, "Amax": 5, "Avg": 6, "Norm1": 7, "Norm2": 8, "MulNoZeros": 9},
    "ResampleMode": {"Maxpool": 1, "AvgpoolExcludePadding": 2, "AvgpoolIncludePadding": 3},
    "PaddingMode": {"NotSet": 0, "NegInf": 1, "Zero": 2},
    "MoeMode": {"None": 0, "Gather": 1, "Scatter": 2},
    "PointwiseMode": {
        "Abs": 1, "Add": 2, "BinarySelect": 4, "CmpEq": 6, "CmpGe": 7, "CmpGt": 8, "CmpLe": 9, "CmpLt": 10, "CmpNeq": 11,
        "Identity": 23, "LogicalAnd": 25, "LogicalNot": 26, "LogicalOr": 27, "Max": 28, "Min": 29, "Mul": 30, "Neg": 31,
        "ReluFwd": 34, "SigmoidFwd": 37, "Sub": 42,
    },
    "DiagonalAlignment": {"TopLeft": 0, "BottomRight": 1},
    "AttentionImplementation": {"Auto": 0, "Composite": 1, "Unified": 2},
}
# The schema's defaults, which the bytes leave out.
DEFAULTS = {"DiagonalAlignment": "TopLeft", "AttentionImplementation": "Auto"}
GEOMETRY = "geometry.pre_padding:longs geometry.post_padding:longs geometry.stride:longs geometry.dilation:longs geometry.mode:ConvMode"
WINDOWS = "pre_padding:longs post_padding:longs stride:longs window:longs resample_mode:ResampleMode padding_mode:PaddingMode"
WORK = "umd_flops:text umd_bytes:text"

# Number in the union, and the fields by their ids: a name alone is a tensor, `-` a field that these graphs never have.
OPERATIONS = {
    "BatchnormInference": (1, "x mean inv_variance scale bias y"),
    "Pointwise": (2, "mode:PointwiseMode relu_lower_clip:f32 relu_upper_clip:f32 relu_lower_clip_slope:f32 - in_0 in_1 in_2 out_0"),
    "ConvFprop": (5, f"x w y {GEOMETRY} {WORK}"),
    "ConvDgrad": (6, f"dy w dx {GEOMETRY} {WORK}"),
    "ConvWgrad": (7, f"x dy dw {GEOMETRY} {WORK}"),
    "Matmul": (9, f"a b c {WORK}"),
    "RmsNorm": (10, "x scale epsilon y bias inv_rms phase:NormPhase"),
    "Sdpa": (
        12,
        "q k v o attn_mask scale seq_len_q seq_len_kv - - - - - - - - - - - - - - stats - - - - - generate_stats:optional "
        "alibi_mask:flag padding_mask:flag causal_mask:flag causal_mask_bottom_right:flag - attn_scale_value:f32 "
        "left_bound:i64 right_bound:i64 - diagonal_alignment:DiagonalAlignment - implementation:AttentionImplementation",
    ),
    "BlockScaleDequantize": (13, "x scale y block_size:ints is_negative_scale:flag"),
    "BlockScaleQuantize": (14, "x y scale block_size:i32 axis:i64 transpose:flag"),
    "SdpaBackward": (
        15,
        "q k v o d_o stats dq dk dv scale attn_mask seq_len_q seq_len_kv - - - - - dbias alibi_mask:flag padding_mask:flag "
        "causal_mask:flag causal_mask_bottom_right:flag - attn_scale_value:f32 left_bound:i64 right_bound:i64 "
        "diagonal_alignment:DiagonalAlignment",
    ),
    "CustomOp": (16, "custom_op_id:text inputs:tensors outputs:tensors data:bytes"),
    "RmsNormBackward": (17, "dy x scale inv_rms dx dscale dbias"),
    "Reduction": (18, "mode:ReductionMode input output is_deterministic:flag"),
    "ResampleFwd": (19, f"x y index {WINDOWS} generate_index:flag"),
    "LayernormBackward": (20, "dy x scale mean inv_variance epsilon dx dscale dbias normalized_dim_count:i64"),
    "ResampleBwd": (21, f"dy dx index {WINDOWS}"),
    "MoeGroupedMatmul": (22, "token weight first_token_offset token_index token_ks output mode:MoeMode top_k:i32"),
    "MoeGroupedMatmulBwd": (23, "doutput token first_token_offset dweight"),
}


class Buffer:
    """Bytes from front to back: what is pointed to comes after what points to it."""

    def __init__(self):
        self.bytes = bytearray(4)

    def align(self, size, ahead=0):
        while (len(self.bytes) + ahead) % size:
            self.bytes.append(0)

    def point(self, slot):
        """Makes the offset at `slot` lead to the end."""
        struct.pack_into("<I", self.bytes, slot, len(self.bytes) - slot)

    def table(self, fields):
        """A table of {id: (type, value)}; the type "at" is a function that writes what the field points to."""
        count = max(fields, default=-1) + 1
        self.align(2)
        vtable = len(self.bytes)
        self.bytes += bytes(4 + 2 * count)
        self.align(4)
        start = len(self.bytes)
        self.bytes += struct.pack("<i", start - vtable)
        later = []
        # The widest first, as FlatBuffers has it; any order would do.
        sizes = {"at": 4, "inline": 4, **{name: struct.calcsize(code) for name, code in SCALARS.items()}}
        for slot, (kind, value) in sorted(fields.items(), key=lambda field: (-sizes[field[1][0]], field[0])):
            self.align(sizes[kind])
            struct.pack_into("<H", self.bytes, vtable + 4 + 2 * slot, len(self.bytes) - start)
            if kind == "at":
                later.append((len(self.bytes), value))
                self.bytes += bytes(4)
            elif kind == "inline":
                self.bytes += value
            else:
                self.bytes += struct.pack(SCALARS[kind], value)
        struct.pack_into("<HH", self.bytes, vtable, 4 + 2 * count, len(self.bytes) - start)
        for slot, write in later:
            write(slot)

    def child(self, fields):
        """Writes a table that a slot points to."""

        def write(slot):
            # Where the table is after its vtable is known only then.
            before = len(self.bytes)
            self.table(fields)
            count = max(fields, default=-1) + 1
            start = before + before % 2 + 4 + 2 * count
            start += -start % 4
            struct.pack_into("<I", self.bytes, slot, start - slot)

        return write

    def vector(self, code, values):
        def write(slot):
            size = struct.calcsize(code)
            self.align(4)
            self.align(max(size, 4), ahead=4)
            self.point(slot)
            self.bytes += struct.pack("<I", len(values))
            for value in values:
                self.bytes += struct.pack(code, value)

        return write

    def text(self, text):
        def write(slot):
            self.align(4)
            self.point(slot)
            self.bytes += struct.pack("<I", len(text.encode())) + text.encode() + b"\0"

        return write

    def tables(self, tables):
        def write(slot):
            self.align(4)
            self.point(slot)
            self.bytes += struct.pack("<I", len(tables))
            slots = [len(self.bytes) + 4 * index for index in range(len(tables))]
            self.bytes += bytes(4 * len(tables))
            for entry, fields in zip(slots, tables):
                self.child(fields)(entry)

        return write

    def packed(self, code, value):
        def write(slot):
            self.align(8)
            self.point(slot)
            self.bytes += struct.pack(code, value)

        return write


class Graph:
    def __init__(self, name):
        self.name, self.tensors, self.nodes = name, [], []

    def tensor(self, name, dtype, dims, strides=None, virtual=False, value=None):
        dense, step = [], 1
        for dim in reversed(dims):
            dense.insert(0, step)
            step *= dim
        self.tensors.append(
            dict(uid=100 + 7 * len(self.tensors), name=name, dtype=dtype, dims=dims, strides=strides or dense, virtual=virtual, value=value)
        )
        return len(self.tensors) - 1

    def op(self, kind, compute="F32", **fields):
        self.nodes.append((kind, compute, fields))
        return self

    def attributes(self, out, fields, layout):
        table = {}
        for slot, field in enumerate(layout.split()):
            name, _, kind = field.partition(":")
            value = fields.get(name.replace(".", "_"))
            if value is None:
                continue
            uid = lambda index: self.tensors[index]["uid"]
            if kind == "":
                table[slot] = ("i64", uid(value))
            elif kind == "tensors":
                table[slot] = ("at", out.vector("<q", [uid(index) for index in value]))
            elif kind in MODES:
                table[slot] = ("u8", MODES[kind][value])
            elif kind == "longs":
                table[slot] = ("at", out.vector("<q", value))
            elif kind == "ints":
                table[slot] = ("at", out.vector("<i", value))
            elif kind == "bytes":
                table[slot] = ("at", out.vector("<B", value.encode()))
            elif kind == "text":
                table[slot] = ("at", out.text(value))
            elif kind in ("flag", "optional"):
                table[slot] = ("u8", int(value))
            else:
                table[slot] = (kind, value)
        return table

    def encoded(self):
        out = Buffer()
        tensors = []
        for tensor in self.tensors:
            table = {
                0: ("i64", tensor["uid"]),
                1: ("at", out.text(tensor["name"])),
                2: ("u8", TYPES[tensor["dtype"]]),
                3: ("at", out.vector("<q", tensor["strides"])),
                4: ("at", out.vector("<q", tensor["dims"])),
                # Offsets of ragged tensors would be multiplied by 1: the default, written out.
                11: ("i64", 1),
            }
            if tensor["virtual"]:
                table[5] = ("u8", 1)
            if isinstance(tensor["value"], bool):
                # BoolValue, the eighth member of the union (tensor_attributes.fbs of tvy-amd/rocm-libraries@4c94ac63153a).
                table[6], table[7] = ("u8", 8), ("at", out.packed("<B", tensor["value"]))
            elif tensor["value"] is not None:
                table[6], table[7] = ("u8", 1), ("at", out.packed("<f", tensor["value"]))
            tensors.append(table)
        nodes = []
        for index, (kind, compute, fields) in enumerate(self.nodes):
            number, layout = OPERATIONS[kind]
            nodes.append(
                {
                    0: ("at", out.text(f"node {index}")),
                    1: ("u8", TYPES[compute]),
                    2: ("u8", number),
                    3: ("at", out.child(self.attributes(out, fields, layout))),
                }
            )
        root = {
            0: ("at", out.text(self.name)),
            4: ("at", out.tables(tensors)),
            5: ("at", out.tables(nodes)),
            8: ("inline", struct.pack("<III", 1, 3, 0)),
            9: ("inline", bytes(range(16))),
        }
        out.child(root)(0)
        return bytes(out.bytes)

    def described(self):
        nodes = []
        for kind, compute, fields in self.nodes:
            op = {}
            for field in OPERATIONS[kind][1].split():
                name, _, form = field.partition(":")
                if name == "-" or name.startswith("umd_"):
                    continue
                value = fields.get(name.replace(".", "_"))
                if form == "bytes":
                    value = list(value.encode())
                elif form == "flag":
                    value = bool(value)
                elif value is None:
                    value = DEFAULTS.get(form)
                outer, _, inner = name.partition(".")
                if inner:
                    op.setdefault(outer, {})[inner] = value
                elif value is not None:
                    op[name] = value
            nodes.append({"compute": compute, "op": {kind: op}})
        return {"name": self.name, "tensors": self.tensors, "nodes": nodes}


def conv(name, kind, names, dims, dtype, mode):
    graph = Graph(name)
    ids = {tensor: graph.tensor(tensor, dtype, dims[tensor]) for tensor in names}
    return graph.op(
        kind,
        **ids,
        geometry_pre_padding=[1, 0],
        geometry_post_padding=[0, 1],
        geometry_stride=[1, 2],
        geometry_dilation=[1, 1],
        geometry_mode=mode,
        umd_flops='{"*": [2, {"var": "x.dims"}]}',
        umd_bytes="0",
    )


def moe(name, mode):
    rows = 23 if mode == "Gather" else 20
    graph = Graph(name)
    fields = dict(
        token=graph.tensor("token", "F16", [1, 20, 16]),
        weight=graph.tensor("weight", "F16", [3, 16, 24]),
        first_token_offset=graph.tensor("offset", "I32", [3, 1, 1]),
        mode=mode,
        top_k=2 if mode == "Scatter" else 0,
    )
    if mode != "None":
        fields["token_index"] = graph.tensor("index", "I32", [1, rows, 1])
    if mode == "Scatter":
        fields["token_ks"] = graph.tensor("ks", "I32", [1, rows, 1])
    return graph.op("MoeGroupedMatmul", output=graph.tensor("output", "F16", [1, rows, 24]), **fields)


def pool(name, kind, mode, padding, index, dtype="F32"):
    graph = Graph(name)
    large, small = [2, 3, 9, 8], [2, 3, 5, 4]
    first, second = ("x", "y") if kind == "ResampleFwd" else ("dy", "dx")
    dims = [large, small] if kind == "ResampleFwd" else [small, large]
    fields = {first: graph.tensor(first, dtype, dims[0])}
    if index and kind == "ResampleBwd":
        fields["index"] = graph.tensor("index", "I32", small)
    fields[second] = graph.tensor(second, dtype, dims[1])
    if index and kind == "ResampleFwd":
        fields["index"] = graph.tensor("index", "I32", small)
    if kind == "ResampleFwd":
        fields["generate_index"] = index
    return graph.op(
        kind, pre_padding=[1, 0], post_padding=[1, 1], stride=[2, 2], window=[3, 3], resample_mode=mode, padding_mode=padding, **fields
    )


def attention(name, **fields):
    graph = Graph(name)
    q, k, v = [2, 4, 9, 16], [2, 2, 13, 16], [2, 2, 13, 8]
    o = [2, 4, 9, 8]
    add = lambda tensor, dims, dtype="F32": graph.tensor(tensor, dtype, dims)
    ids = dict(q=add("q", q), k=add("k", k), v=add("v", v), o=add("o", o), d_o=add("do", o), stats=add("stats", [2, 4, 9, 1]))
    if fields.pop("mask", False):
        ids["attn_mask"] = add("mask", [1, 4, 9, 13])
        ids["dbias"] = add("dbias", [1, 4, 9, 13])
    ids.update(dq=add("dq", q), dk=add("dk", k), dv=add("dv", v))
    return graph.op("SdpaBackward", **ids, **fields)


BODY = """// add square
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @mix(%x: tensor<6x10xf32>, %y: tensor<6x10xf32>) -> tensor<6x10xf32> {
  %empty = tensor.empty() : tensor<6x10xf32>
  %z = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<6x10xf32>, tensor<6x10xf32>) outs(%empty : tensor<6x10xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %square = arith.mulf %b, %b : f32
    %sum = arith.addf %a, %square : f32
    linalg.yield %sum : f32
  } -> tensor<6x10xf32>
  return %z : tensor<6x10xf32>
}
"""


def graphs():
    dims = {"x": [2, 4, 7, 9], "w": [6, 4, 3, 2], "y": [2, 6, 6, 5]}
    turned = "Convolution"
    yield conv("conv_turned", "ConvFprop", ["x", "w", "y"], dims, "F32", turned)
    gradient = {"dy": dims["y"], "dx": dims["x"], "dw": dims["w"], **dims}
    yield conv("conv_turned_dgrad", "ConvDgrad", ["dy", "w", "dx"], gradient, "F32", turned)
    yield conv("conv_turned_wgrad", "ConvWgrad", ["x", "dy", "dw"], gradient, "F32", turned)
    yield conv("conv_correlated", "ConvFprop", ["x", "w", "y"], dims, "F16", "CrossCorrelation")

    for mode in ["None", "Gather", "Scatter"]:
        yield moe(f"moe_{mode.lower()}", mode)
    graph = Graph("moe_backward")
    yield graph.op(
        "MoeGroupedMatmulBwd",
        doutput=graph.tensor("doutput", "F32", [1, 20, 24]),
        token=graph.tensor("token", "F32", [1, 20, 16]),
        first_token_offset=graph.tensor("offset", "I32", [3, 1, 1]),
        dweight=graph.tensor("dweight", "F32", [3, 16, 24]),
    )

    yield pool("pool_max", "ResampleFwd", "Maxpool", "NegInf", True)
    yield pool("pool_max_zeros", "ResampleFwd", "Maxpool", "Zero", False, "F16")
    yield pool("pool_average", "ResampleFwd", "AvgpoolExcludePadding", "Zero", False)
    yield pool("pool_max_backward", "ResampleBwd", "Maxpool", "NegInf", True)
    yield pool("pool_average_backward", "ResampleBwd", "AvgpoolIncludePadding", "Zero", False)

    graph = Graph("block_scaled_product")
    a, b = graph.tensor("a", "F8E4M3", [32, 64]), graph.tensor("b", "F8E5M2", [64, 16])
    a_scale, b_scale = graph.tensor("a_scale", "F8E8M0", [32, 2]), graph.tensor("b_scale", "F8E8M0", [64, 1])
    wide_a, wide_b = (graph.tensor(name, "F32", dims, virtual=True) for name, dims in [("wide_a", [32, 64]), ("wide_b", [64, 16])])
    graph.op("BlockScaleDequantize", x=a, scale=a_scale, y=wide_a, block_size=[32])
    graph.op("BlockScaleDequantize", x=b, scale=b_scale, y=wide_b, block_size=[16])
    yield graph.op("Matmul", a=wide_a, b=wide_b, c=graph.tensor("c", "F16", [32, 16]), umd_flops="1")
    graph = Graph("block_scale_quantize")
    yield graph.op(
        "BlockScaleQuantize",
        x=graph.tensor("x", "F32", [6, 64]),
        y=graph.tensor("y", "F8E4M3", [6, 64]),
        scale=graph.tensor("scale", "F8E8M0", [6, 2]),
        block_size=32,
        axis=1,
    )
    graph = Graph("fnuz_product")
    yield graph.op(
        "Matmul",
        a=graph.tensor("a", "F8E4M3Fnuz", [32, 64]),
        b=graph.tensor("b", "F8E5M2Fnuz", [64, 48], strides=[1, 64]),
        c=graph.tensor("c", "F32", [32, 48]),
    )

    graph = Graph("truths")
    x, y = graph.tensor("x", "F32", [6, 40]), graph.tensor("y", "F32", [6, 40])
    mask, above = graph.tensor("mask", "Bool", [6, 40]), graph.tensor("above", "Bool", [6, 40])
    chosen, every = graph.tensor("chosen", "F32", [6, 40]), graph.tensor("every", "Bool", [1, 1], value=True)
    both, count = graph.tensor("both", "Bool", [6, 40], virtual=True), graph.tensor("count", "I32", [6, 1])
    graph.op("Pointwise", mode="CmpGt", in_0=x, in_1=y, out_0=above)
    graph.op("Pointwise", mode="LogicalAnd", in_0=mask, in_1=every, out_0=both)
    graph.op("Reduction", compute="I32", mode="Add", input=both, output=count)
    yield graph.op("Pointwise", mode="BinarySelect", in_0=x, in_1=y, in_2=above, out_0=chosen)
    graph = Graph("sdpa_truths")
    ids = {name: graph.tensor(name, "F16", [1, 2, 16, 16]) for name in "qkvo"}
    yield graph.op("Sdpa", **ids, attn_mask=graph.tensor("mask", "Bool", [1, 1, 16, 16]), attn_scale_value=0.25)

    yield attention("sdpa_backward", attn_scale_value=0.25, right_bound=0, diagonal_alignment="BottomRight")
    yield attention("sdpa_backward_mask", attn_scale_value=0.5, mask=True)

    graph = Graph("custom")
    x, y = graph.tensor("x", "F32", [6, 10]), graph.tensor("y", "F32", [6, 10])
    z, relu = graph.tensor("z", "F32", [6, 10], virtual=True), graph.tensor("relu", "F32", [6, 10])
    graph.op("CustomOp", custom_op_id="rotini.mlir", inputs=[x, y], outputs=[z], data=BODY)
    yield graph.op("Pointwise", mode="ReluFwd", in_0=z, out_0=relu, relu_lower_clip=0.25, relu_upper_clip=0.5)

    graph = Graph("rms_norm_short_scale")
    yield graph.op(
        "RmsNorm",
        x=graph.tensor("x", "F32", [4, 3, 65]),
        scale=graph.tensor("scale", "F32", [65]),
        epsilon=graph.tensor("epsilon", "F32", [1], value=0.0078125),
        y=graph.tensor("y", "F32", [4, 3, 65]),
        inv_rms=graph.tensor("inv_rms", "F32", [4, 3, 1]),
        phase="Training",
    )
    graph = Graph("batchnorm_channels")
    parameters = {name: graph.tensor(name, "F32", [5]) for name in ["mean", "inv_variance", "scale", "bias"]}
    yield graph.op("BatchnormInference", x=graph.tensor("x", "F16", [2, 5, 3, 4]), y=graph.tensor("y", "F16", [2, 5, 3, 4]), **parameters)
    graph = Graph("layernorm_backward")
    names = {"dy": [6, 32], "x": [6, 32], "scale": [1, 32], "mean": [6, 1], "inv_variance": [6, 1], "dx": [6, 32], "dscale": [1, 32], "dbias": [1, 32]}
    yield graph.op("LayernormBackward", **{name: graph.tensor(name, "F32", dims) for name, dims in names.items()}, normalized_dim_count=1)
    graph = Graph("rms_norm_backward")
    names = {"dy": [6, 32], "x": [6, 32], "scale": [1, 32], "inv_rms": [6, 1], "dx": [6, 32], "dscale": [1, 32], "dbias": [1, 32]}
    yield graph.op("RmsNormBackward", **{name: graph.tensor(name, "F32", dims) for name, dims in names.items()})
    graph = Graph("reduction")
    x, mean, y = graph.tensor("x", "F32", [4, 6, 10]), graph.tensor("mean", "F32", [4, 1, 10], virtual=True), graph.tensor("y", "F32", [4, 1, 10])
    graph.op("Reduction", mode="Avg", input=x, output=mean, is_deterministic=True)
    yield graph.op("Pointwise", mode="SigmoidFwd", in_0=mean, out_0=y)


def write(directory, graphs):
    """Writes both forms of each graph."""
    for graph in graphs:
        with open(f"{directory}/{graph.name}.fb", "wb") as file:
            file.write(graph.encoded())
        with open(f"{directory}/{graph.name}.json", "w", encoding="utf-8") as file:
            json.dump(graph.described(), file, indent=1)
            file.write("\n")


def main():
    [directory] = sys.argv[1:]
    write(directory, graphs())


if __name__ == "__main__":
    main()
