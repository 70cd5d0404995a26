#!/usr/bin/env python3
"""Random graphs with truth values and FNUZ, by the second encoder (`encode.py`).

Each graph has the seed SEED + its number, so that any one is made again alone.

    random_types.py DIRECTORY SEED COUNT
"""

import random
import sys

from encode import Graph, write

FLOATS = ["F32", "F16", "Bf16"]
INTEGERS = ["I32", "I8", "U8", "I64"]
FNUZ = ["F8E4M3Fnuz", "F8E5M2Fnuz"]
COMPARISONS = ["CmpEq", "CmpGe", "CmpGt", "CmpLe", "CmpLt", "CmpNeq"]
# What no tensor exceeds: the largest E4M3 FNUZ is 240.
LARGEST = 4000


class Tensor:
    """What is known of a tensor: `exact` if it does not depend on how a kernel rounds, and what no element exceeds."""

    def __init__(self, index, dtype, dims, size, exact):
        self.index, self.dtype, self.dims, self.size, self.exact = index, dtype, dims, size, exact

    def is_whole(self):
        return self.exact and (self.dtype == "Bool" or self.dtype in INTEGERS)


class Draft:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.graph = Graph(f"{seed}")
        self.tensors = []
        self.read = set()

    def dims(self):
        rank = self.rng.choice([1, 2, 2, 3, 4, 4])
        most = {1: 40, 2: 24, 3: 9, 4: 6}[rank]
        return [self.rng.randint(1, most) for _ in range(rank)]

    def strides(self, dims, is_input):
        """Packed, the axes shuffled, with gaps, or of an input with one axis repeated."""
        order = list(range(len(dims)))
        form = self.rng.randrange(10)
        if form >= 6:
            self.rng.shuffle(order)
        step, strides = 2 if form == 8 else 1, [0] * len(dims)
        repeated = self.rng.choice(order) if form == 9 and is_input else None
        for axis in reversed(order):
            if axis == repeated:
                continue
            strides[axis] = step
            step = step * dims[axis] + (self.rng.randrange(3) if form == 8 else 0)
        return strides

    def size(self, dtype):
        if dtype == "Bool":
            return 1
        return {"I8": 128, "U8": 255}.get(dtype, 4096 if dtype in INTEGERS else 3)

    def input(self, dtype, dims, strides=None):
        strides = strides or self.strides(dims, True)
        index = self.graph.tensor(f"in{len(self.graph.tensors)}", dtype, dims, strides=strides)
        made = Tensor(index, dtype, dims, self.size(dtype), True)
        self.tensors.append(made)
        return made

    def result(self, dtype, dims, size, exact):
        virtual = self.rng.random() < 0.6
        name = f"out{len(self.graph.tensors)}"
        index = self.graph.tensor(name, dtype, dims, strides=self.strides(dims, False), virtual=virtual)
        made = Tensor(index, dtype, dims, min(size, self.size(dtype)) if dtype not in FLOATS else size, exact)
        self.tensors.append(made)
        return made

    def pick(self, fits):
        found = [tensor for tensor in self.tensors if fits(tensor)]
        return self.rng.choice(found[-4:]) if found and self.rng.random() < 0.75 else None

    def any(self, dtypes, fits=lambda tensor: True):
        return self.pick(lambda tensor: tensor.dtype in dtypes and fits(tensor)) or self.input(self.rng.choice(dtypes), self.dims())

    def beside(self, other, dtypes, fits=lambda tensor: True):
        """An operand that broadcasts to the dims of another one."""
        found = self.pick(lambda tensor: tensor.dims == other.dims and tensor.dtype in dtypes and fits(tensor))
        if found:
            return found
        dims = other.dims if self.rng.random() < 0.6 else [dim if self.rng.random() < 0.5 else 1 for dim in other.dims]
        return self.input(self.rng.choice(dtypes), dims)

    def constant(self, dims):
        name = f"const{len(self.graph.tensors)}"
        index = self.graph.tensor(name, "Bool", [1] * len(dims), value=self.rng.random() < 0.5)
        return Tensor(index, "Bool", [1] * len(dims), 1, True)

    def compute(self, operands):
        """In integers where every operand is one that does not depend on rounding, sometimes."""
        if all(operand.is_whole() for operand in operands) and self.rng.random() < 0.6:
            return self.rng.choice(["I32", "I32", "I64"])
        return self.rng.choice(["F32", "F32", "F32", "F16", "Bf16"])

    def op(self, kind, compute, **fields):
        self.read.update(value for name, value in fields.items() if is_tensor(name, value) and name not in WRITTEN)
        self.graph.op(kind, compute=compute, **fields)

    def pointwise(self, mode, operands, out, compute=None):
        fields = {f"in_{position}": operand.index for position, operand in enumerate(operands)}
        self.op("Pointwise", compute or self.compute(operands), mode=mode, out_0=out.index, **fields)

    def types(self):
        return FLOATS + ["Bool"] * 4 + INTEGERS[:3] + FNUZ

    # Families of operations.

    def compare(self):
        x = self.any(self.types())
        y = self.beside(x, self.types())
        dtype = self.rng.choice(["Bool", "Bool", "Bool", "F32", "U8"])
        self.pointwise(self.rng.choice(COMPARISONS), [x, y], self.result(dtype, x.dims, 1, x.exact and y.exact))

    def logic(self):
        x = self.any(["Bool", "Bool", "F32", "I8"] + FNUZ)
        dtype = self.rng.choice(["Bool", "Bool", "F16", "I32"])
        if self.rng.random() < 0.3:
            self.pointwise("LogicalNot", [x], self.result(dtype, x.dims, 1, x.exact))
            return
        y = self.constant(x.dims) if self.rng.random() < 0.2 else self.beside(x, ["Bool", "Bool", "U8", "F16"])
        mode = self.rng.choice(["LogicalAnd", "LogicalOr"])
        self.pointwise(mode, [x, y], self.result(dtype, x.dims, 1, x.exact and y.exact))

    def select(self):
        x = self.any(self.types())
        y = self.beside(x, self.types())
        mask = self.constant(x.dims) if self.rng.random() < 0.15 else self.beside(x, ["Bool"])
        dtype = self.rng.choice(self.types())
        exact = x.exact and y.exact and mask.exact
        self.pointwise("BinarySelect", [x, y, mask], self.result(dtype, x.dims, max(x.size, y.size), exact))

    def cast(self):
        x = self.any(self.types())
        dtype = self.rng.choice(["Bool"] * 4 + FNUZ * 2 + FLOATS + INTEGERS)
        self.pointwise("Identity", [x], self.result(dtype, x.dims, x.size, x.exact))

    def arithmetic(self):
        x = self.any(["Bool", "Bool"] + FNUZ + FLOATS + ["I8"])
        mode = self.rng.choice(["Add", "Sub", "Mul", "Max", "Min", "Neg", "Abs", "ReluFwd"])
        operands = [x] if mode in ("Neg", "Abs", "ReluFwd") else [x, self.beside(x, ["Bool"] + FNUZ + ["F32", "I8"])]
        sizes = [operand.size for operand in operands]
        size = {"Mul": sizes[0] * sizes[-1], "Add": sum(sizes), "Sub": sum(sizes)}.get(mode, max(sizes))
        if size > LARGEST:
            return
        compute = self.compute(operands)
        exact = all(operand.exact for operand in operands) and (compute in INTEGERS or mode in ("Max", "Min", "Neg", "Abs", "ReluFwd"))
        dtype = self.rng.choice(["Bool", "Bool", "F32", "F16"] + FNUZ + ["I32"])
        self.pointwise(mode, operands, self.result(dtype, x.dims, size, exact), compute)

    def reduce(self):
        x = self.any(["Bool", "Bool", "Bool"] + FNUZ + ["F32"])
        out = [1 if self.rng.random() < 0.5 else dim for dim in x.dims]
        count = 1
        for dim, kept in zip(x.dims, out):
            count *= dim if kept != dim else 1
        if out == x.dims or x.size * count > LARGEST:
            return
        mode = self.rng.choice(["Add", "Max", "Min", "Amax", "Avg", "Norm1", "Norm2"])
        compute = self.compute([x]) if mode not in ("Avg", "Norm2") else "F32"
        exact = x.exact and (compute in INTEGERS or mode in ("Max", "Min", "Amax"))
        dtype = self.rng.choice(["Bool", "Bool", "F32", "I32", "Bf16"])
        result = self.result(dtype, out, x.size * count, exact)
        self.op("Reduction", compute, mode=mode, input=x.index, output=result.index)

    def matmul(self):
        rows, inner, columns = (self.rng.choice([1, 3, 16, 17, 32, 40]) for _ in range(3))
        batch = self.rng.choice([[], [2]])
        a = self.input(self.rng.choice(FNUZ), batch + [rows, inner])
        b = self.input(self.rng.choice(FNUZ), batch + [inner, columns])
        out = self.result(self.rng.choice(FLOATS + FNUZ), batch + [rows, columns], 3 * inner, False)
        self.op("Matmul", "F32", a=a.index, b=b.index, c=out.index)

    def mask(self, scores):
        """A mask that broadcasts to scores: of keys, of scores, of all; perhaps computed, by value, or with axes that are repeated."""
        batch, heads, queries, keys = scores
        dims = self.rng.choice([[batch, 1, 1, keys], [1, 1, queries, keys], scores, [queries, keys], [keys], [1, heads, queries, 1]])
        form = self.rng.randrange(8)
        if form == 0:
            return self.constant(scores)
        if form == 1 and dims == scores:
            return self.input("Bool", dims, strides=[0, 0, keys, 1])
        if form in (2, 3):
            x, y = self.input("F32", dims), self.input("F32", dims)
            mask = self.result("Bool", dims, 1, True)
            self.pointwise(self.rng.choice(COMPARISONS), [x, y], mask, "F32")
            return mask
        return self.input("Bool", dims)

    def attention(self):
        rng = self.rng
        batch, heads, columns = rng.choice([1, 2]), rng.choice([1, 2, 4]), rng.choice([8, 16, 32, 64])
        queries, keys = rng.choice([1, 9, 16, 33, 64]), rng.choice([1, 13, 16, 48, 70])
        dtype = rng.choice(["F32", "F16", "F16", "Bf16"])
        key_heads = rng.choice([heads, 1])
        plain = lambda name, dims, kind=dtype, virtual=False: self.graph.tensor(f"{name}{len(self.graph.tensors)}", kind, dims, virtual=virtual)
        q, k, v = (plain(name, [batch, count, length, columns]) for name, count, length in [("q", heads, queries), ("k", key_heads, keys), ("v", key_heads, keys)])
        mask = self.mask([batch, heads, queries, keys]).index
        bounds = rng.choice([{}, {}, {"right_bound": 0}, {"left_bound": 3, "right_bound": 2}])
        fields = dict(q=q, k=k, v=v, attn_mask=mask, attn_scale_value=0.25, **bounds)
        if rng.random() < 0.35:
            fields.update({name: plain(name, [batch, heads, queries, columns]) for name in ["o", "d_o"]})
            fields["stats"] = plain("stats", [batch, heads, queries, 1], "F32")
            for name, like in [("dq", q), ("dk", k), ("dv", v)]:
                fields[name] = plain(name, self.graph.tensors[like]["dims"])
            self.op("SdpaBackward", "F32", **fields)
            return
        fields["o"] = plain("o", [batch, heads, queries, columns])
        if rng.random() < 0.5:
            fields.update(stats=plain("stats", [batch, heads, queries, 1], "F32"), generate_stats=True)
        self.op("Sdpa", "F32", **fields)

    def finish(self):
        """What nothing reads is stored, and what nothing reads or writes is left out."""
        written = set()
        for _, _, fields in self.graph.nodes:
            written.update(value for name, value in fields.items() if name in WRITTEN)
        if not self.graph.nodes:
            return None
        for index, tensor in enumerate(self.graph.tensors):
            if index not in self.read:
                tensor["virtual"] = False
        used = sorted(self.read | written)
        places = {old: new for new, old in enumerate(used)}
        self.graph.tensors = [self.graph.tensors[index] for index in used]
        self.graph.nodes = [
            (kind, compute, {name: places[value] if is_tensor(name, value) else value for name, value in fields.items()})
            for kind, compute, fields in self.graph.nodes
        ]
        return self.graph


WRITTEN = {"out_0", "output", "c", "dq", "dk", "dv"}
ATTRIBUTES = {"left_bound", "right_bound", "generate_stats"}


def is_tensor(name, value):
    """Whether an argument of an operation is a tensor."""
    return isinstance(value, int) and name not in ATTRIBUTES


def draft(seed):
    draft = Draft(seed)
    families = [draft.compare, draft.logic, draft.select, draft.cast, draft.arithmetic, draft.reduce, draft.matmul, draft.attention]
    weights = [4, 3, 4, 5, 4, 3, 2, 2]
    for family in draft.rng.choices(families, weights, k=draft.rng.choice([1, 1, 2, 3, 4, 6, 9])):
        family()
    return draft.finish() or simplest(seed)


def simplest(seed):
    graph = Graph(f"{seed}")
    return graph.op("Pointwise", mode="Identity", in_0=graph.tensor("x", "F32", [7]), out_0=graph.tensor("y", "Bool", [7]))


def main():
    directory, seed, count = sys.argv[1:]
    write(directory, (draft(int(seed) + number) for number in range(int(count))))


if __name__ == "__main__":
    main()
