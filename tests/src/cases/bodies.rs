//! Custom operations whose bodies trigger a defect of the compiler as written: one for each quirk
//! that a body can express.

use super::custom::graphs::{element, node, tensor};
use rotini_graph::DataType::{self, Bf16, F16, F32, F64, I8, I32, U8};
use rotini_graph::{Graph, GraphBuilder, PointwiseMode, TensorId};

/// Graphs with their names.
pub(super) type Named = Vec<(String, Graph)>;

/// A tensor that a body reads: its name, extents and element type, and the loop of each of its
/// axes.
type Read<'a> = (&'a str, &'a [i64], DataType, &'a [usize]);

/// Returns a structured operation that computes `result`, starting from 0 if it reduces. `loops` is
/// the number of loops and `reduced` the reduction loops; reads are named %a0, %a1 and so on, the
/// result has extents, element type and loops, and the lines compute %r.
fn structured(
    result: &str,
    (loops, reduced): (usize, &[usize]),
    reads: &[Read<'_>],
    (dims, dtype, places): (&[i64], DataType, &[usize]),
    lines: &[&str],
) -> String {
    let map = |places: &[usize]| {
        let list = |items: &mut dyn Iterator<Item = usize>| items.map(|index| format!("d{index}")).collect::<Vec<_>>();
        let (all, some) = (list(&mut (0..loops)), list(&mut places.iter().copied()));
        format!("affine_map<({}) -> ({})>", all.join(", "), some.join(", "))
    };
    let joined = |item: &dyn Fn(&Read<'_>) -> String| reads.iter().map(item).collect::<Vec<_>>().join(", ");
    let (ty, of) = (tensor(dtype, dims), element(dtype));
    let zero = if dtype.is_float() { "0.0" } else { "0" };
    let start = if reduced.is_empty() {
        format!("  %s_{result} = tensor.empty() : {ty}\n")
    } else {
        format!(
            "  %z_{result} = arith.constant {zero} : {of}\n  %e_{result} = tensor.empty() : {ty}\n  \
             %s_{result} = linalg.fill ins(%z_{result} : {of}) outs(%e_{result} : {ty}) -> {ty}\n"
        )
    };
    let kinds: Vec<&str> = (0..loops)
        .map(|index| {
            if reduced.contains(&index) {
                "\"reduction\""
            } else {
                "\"parallel\""
            }
        })
        .collect();
    let arguments: String = (0..)
        .zip(reads)
        .map(|(index, read)| format!("%a{index}: {}, ", element(read.2)))
        .collect();
    let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!(
        "{start}  %{result} = linalg.generic {{indexing_maps = [{}, {}], iterator_types = [{}]}} ins({} : {}) outs(%s_{result} : {ty}) {{\n  \
         ^bb0({arguments}%s: {of}):\n{lines}    linalg.yield %r : {of}\n  }} -> {ty}\n",
        joined(&|read| map(read.3)),
        map(places),
        kinds.join(", "),
        joined(&|read| format!("%{}", read.0)),
        joined(&|read| tensor(read.2, read.1)),
    )
}

type Tensor<'a> = (&'a str, DataType, &'a [i64]);

/// Adds a case: its name, the name by which the reference knows the body, inputs, outputs and
/// statements.
fn add(cases: &mut Named, name: &str, known: &str, inputs: &[Tensor<'_>], outputs: &[Tensor<'_>], statements: &str) {
    let joined = |tensors: &[Tensor<'_>], item: &dyn Fn(&Tensor<'_>) -> String| {
        tensors.iter().map(item).collect::<Vec<_>>().join(", ")
    };
    let types = joined(outputs, &|&(_, dtype, dims)| tensor(dtype, dims));
    let body = format!(
        "// {known}\nfunc.func @f({}) -> ({types}) {{\n{statements}  return {} : {types}\n}}\n",
        joined(inputs, &|&(name, dtype, dims)| format!(
            "%{name}: {}",
            tensor(dtype, dims)
        )),
        joined(outputs, &|(name, ..)| format!("%{name}")),
    );
    let mut b = GraphBuilder::new("custom");
    let mut buffers = |tensors: &[Tensor<'_>], kind: &str| -> Vec<TensorId> {
        let tensors = tensors.iter();
        tensors
            .map(|&(name, dtype, dims)| b.buffer(&format!("{kind} {name}"), dtype, dims))
            .collect()
    };
    let (inputs, outputs) = (buffers(inputs, "input"), buffers(outputs, "output"));
    node(&mut b, &inputs, &outputs, body);
    cases.push((format!("custom_{name}"), b.build()));
}

/// Adds batched sums of products, x\[b, k, m\] z\[b, k, n\]; `lines` compute %u from %a0 and %v
/// from %a1.
fn batches(cases: &mut Named, name: &str, known: &str, types: [DataType; 2], [b, m, k, n]: [i64; 4], lines: &[&str]) {
    let [of_x, of_z] = types;
    let to = if of_x.is_float() { F32 } else { I32 };
    let (x, z, y) = ([b, k, m], [b, k, n], [b, m, n]);
    let sums = if to == F32 {
        ["%p = arith.mulf %u, %v : f32", "%r = arith.addf %s, %p : f32"]
    } else {
        ["%p = arith.muli %u, %v : i32", "%r = arith.addi %s, %p : i32"]
    };
    let reads: [Read<'_>; 2] = [("x", &x, of_x, &[0, 3, 1]), ("z", &z, of_z, &[0, 3, 2])];
    let body = structured("y", (4, &[3]), &reads, (&y, to, &[0, 1, 2]), &[lines, &sums].concat());
    let name = format!("{name}_{b}x{m}x{k}x{n}");
    add(
        cases,
        &name,
        known,
        &[("x", of_x, &x), ("z", of_z, &z)],
        &[("y", to, &y)],
        &body,
    );
}

fn products(cases: &mut Named) {
    let known = "batched products";
    let plain = ["%u = arith.negf %a0 : f32", "%v = arith.negf %a1 : f32"];
    let halves = ["%u = arith.extf %a0 : f16 to f32", "%v = arith.extf %a1 : f16 to f32"];
    let mixed = ["%u = arith.extf %a0 : f16 to f32", "%v = arith.extf %a1 : bf16 to f32"];
    let signed = ["%u = arith.extsi %a0 : i8 to i32", "%v = arith.extsi %a1 : i8 to i32"];
    let unsigned = ["%u = arith.extui %a0 : i8 to i32", "%v = arith.extui %a1 : i8 to i32"];
    let half_signed = ["%u = arith.extui %a0 : i8 to i32", "%v = arith.extsi %a1 : i8 to i32"];
    for dims in [[3, 3, 7, 5], [4, 17, 33, 19], [1, 5, 7, 9]] {
        batches(cases, "products_f16", known, [F16; 2], dims, &halves);
        batches(cases, "products_f16_by_bf16", known, [F16, Bf16], dims, &mixed);
        batches(cases, "products_i8", known, [I8; 2], dims, &signed);
        batches(cases, "products_u8", known, [U8; 2], dims, &unsigned);
        batches(cases, "products_u8_by_i8", known, [U8, I8], dims, &half_signed);
        batches(cases, "products_turned_twice", known, [F32; 2], dims, &plain);
    }
    let magnitudes = ["%u = math.absf %a0 : f32", "%v = math.absf %a1 : f32"];
    let known = "batched products of magnitudes";
    batches(
        cases,
        "products_of_magnitudes",
        known,
        [F32; 2],
        [4, 5, 7, 6],
        &magnitudes,
    );
    batches(
        cases,
        "odd_halves",
        "batched products",
        [F16; 2],
        [1, 72, 7, 2],
        &halves,
    );
    // Operands that preceding operations compute.
    let (x, z, y) = ([5, 7], [7, 9], [5, 9]);
    let mut body = String::new();
    for (result, from, dims) in [("v", "x", &x), ("w", "z", &z)] {
        let reads: [Read<'_>; 1] = [(from, dims, F32, &[0, 1])];
        body += &structured(
            result,
            (2, &[]),
            &reads,
            (dims, F32, &[0, 1]),
            &["%r = arith.negf %a0 : f32"],
        );
    }
    let reads: [Read<'_>; 2] = [("v", &x, F32, &[0, 2]), ("w", &z, F32, &[2, 1])];
    let lines = ["%p = arith.mulf %a0, %a1 : f32", "%r = arith.addf %s, %p : f32"];
    body += &structured("y", (3, &[2]), &reads, (&y, F32, &[0, 1]), &lines);
    let inputs: [Tensor<'_>; 2] = [("x", F32, &x), ("z", F32, &z)];
    add(cases, "settled_product", "product", &inputs, &[("y", F32, &y)], &body);
    // Sums that are stored beside values computed from them.
    let (x, z, y) = ([1, 3, 24], [1, 24, 6], [1, 3, 6]);
    let reads: [Read<'_>; 2] = [("x", &x, F32, &[0, 1, 3]), ("z", &z, F32, &[0, 3, 2])];
    let lines = ["%p = arith.mulf %a0, %a1 : f32", "%r = arith.addf %s, %p : f32"];
    let mut body = structured("y", (4, &[3]), &reads, (&y, F32, &[0, 1, 2]), &lines);
    for (result, from, line) in [
        ("b", "y", "%r = math.absf %a0 : f32"),
        ("n", "b", "%r = arith.negf %a0 : f32"),
    ] {
        body += &structured(
            result,
            (3, &[]),
            &[(from, &y, F32, &[0, 1, 2])],
            (&y, F32, &[0, 1, 2]),
            &[line],
        );
    }
    let outputs: [Tensor<'_>; 3] = [("y", F32, &y), ("b", F32, &y), ("n", F32, &y)];
    let known = "products, magnitudes, and those turned";
    add(
        cases,
        "products_stored",
        known,
        &[("x", F32, &x), ("z", F32, &z)],
        &outputs,
        &body,
    );
    // Sums with an addition after them.
    let (x, z, y) = ([6, 2], [2, 9], [6, 9]);
    let reads: [Read<'_>; 2] = [("x", &x, F32, &[0, 2]), ("z", &z, F32, &[2, 1])];
    let mut body = structured("v", (3, &[2]), &reads, (&y, F32, &[0, 1]), &lines);
    let reads: [Read<'_>; 2] = [("v", &y, F32, &[0, 1]), ("w", &y, F32, &[0, 1])];
    let line = "%r = arith.addf %a0, %a1 : f32";
    body += &structured("y", (2, &[]), &reads, (&y, F32, &[0, 1]), &[line]);
    let inputs: [Tensor<'_>; 3] = [("x", F32, &x), ("z", F32, &z), ("w", F32, &y)];
    add(
        cases,
        "product_and_more",
        "product and more",
        &inputs,
        &[("y", F32, &y)],
        &body,
    );
    // An operand that is repeated along some of the summed loops.
    let (x, z) = ([5, 4, 6], [4, 6]);
    let reads: [Read<'_>; 3] = [
        ("x", &x, F32, &[0, 1, 2]),
        ("z", &z, F32, &[1, 2]),
        ("v", &x, F32, &[0, 1, 2]),
    ];
    let lines = [
        "%o = arith.mulf %a0, %a2 : f32",
        "%p = arith.mulf %o, %a1 : f32",
        "%r = arith.addf %s, %p : f32",
    ];
    let body = structured("y", (3, &[0, 1]), &reads, (&[6], F32, &[2]), &lines);
    let inputs: [Tensor<'_>; 3] = [("x", F32, &x), ("z", F32, &z), ("v", F32, &x)];
    add(
        cases,
        "repeated_weights",
        "repeated weights",
        &inputs,
        &[("y", F32, &[6])],
        &body,
    );
    // A sum of negated elements.
    let lines = ["%n = arith.negf %a0 : f32", "%r = arith.addf %s, %n : f32"];
    let reads: [Read<'_>; 1] = [("x", &[100, 64], F32, &[0, 1])];
    let body = structured("y", (2, &[1]), &reads, (&[100], F32, &[0]), &lines);
    let inputs: [Tensor<'_>; 1] = [("x", F32, &[100, 64])];
    add(
        cases,
        "negated_rows",
        "negated rows",
        &inputs,
        &[("y", F32, &[100])],
        &body,
    );
    // Products that the next operation sums.
    let reads: [Read<'_>; 2] = [("x", &[6, 19], F16, &[0, 1]), ("z", &[6, 19], Bf16, &[0, 1])];
    let lines = [mixed[0], mixed[1], "%r = arith.mulf %u, %v : f32"];
    let mut body = structured("w", (2, &[]), &reads, (&[6, 19], F32, &[0, 1]), &lines);
    let reads: [Read<'_>; 1] = [("w", &[6, 19], F32, &[0, 1])];
    body += &structured(
        "y",
        (2, &[1]),
        &reads,
        (&[6], F32, &[0]),
        &["%r = arith.addf %s, %a0 : f32"],
    );
    let inputs: [Tensor<'_>; 2] = [("x", F16, &[6, 19]), ("z", Bf16, &[6, 19])];
    add(
        cases,
        "weighted_rows",
        "weighted rows",
        &inputs,
        &[("y", F32, &[6])],
        &body,
    );
}

/// Adds sums of products with other loops in the same function: a concatenation times z, minus the
/// sums of its rows.
fn beside_products(cases: &mut Named) {
    let (x, joined, z, y) = ([3, 5, 8], [3, 10, 8], [3, 8, 7], [3, 10, 7]);
    let (from, to) = (tensor(F32, &x), tensor(F32, &joined));
    let mut body = format!("  %j = tensor.concat dim(1) %x, %x : ({from}, {from}) -> {to}\n");
    let of_j: [Read<'_>; 1] = [("j", &joined, F32, &[0, 1, 2])];
    let lines = ["%r = arith.addf %s, %a0 : f32"];
    body += &structured("t", (3, &[2]), &of_j, (&[3, 10], F32, &[0, 1]), &lines);
    let reads: [Read<'_>; 2] = [("j", &joined, F32, &[0, 1, 3]), ("z", &z, F32, &[0, 3, 2])];
    let lines = ["%p = arith.mulf %a0, %a1 : f32", "%r = arith.addf %s, %p : f32"];
    body += &structured("m", (4, &[3]), &reads, (&y, F32, &[0, 1, 2]), &lines);
    let reads: [Read<'_>; 2] = [("m", &y, F32, &[0, 1, 2]), ("t", &[3, 10], F32, &[0, 1])];
    body += &structured(
        "y",
        (3, &[]),
        &reads,
        (&y, F32, &[0, 1, 2]),
        &["%r = arith.subf %a0, %a1 : f32"],
    );
    let inputs: [Tensor<'_>; 2] = [("x", F32, &x), ("z", F32, &z)];
    add(
        cases,
        "centred_products",
        "centred products",
        &inputs,
        &[("y", F32, &y)],
        &body,
    );
}

/// Adds bodies with constants that the compiler discovers only late.
fn constants(cases: &mut Named) {
    let clamped = [
        "%p = arith.extsi %a0 : i32 to i64",
        "%q = arith.extsi %a1 : i32 to i64",
        "%u = arith.subi %p, %q : i64",
        "%least = arith.constant -2147483648 : i64",
        "%most = arith.constant 2147483647 : i64",
        "%m = arith.maxsi %u, %least : i64",
        "%n = arith.minsi %m, %most : i64",
        "%r = arith.trunci %n : i64 to i32",
    ];
    let (x, y) = ([2, 1, 5, 6], [2, 6, 1, 5]);
    let reads: [Read<'_>; 2] = [("x", &x, I32, &[0, 2, 3, 1]), ("x", &x, I32, &[0, 2, 3, 1])];
    let body = structured("y", (4, &[]), &reads, (&y, I32, &[0, 1, 2, 3]), &clamped);
    add(
        cases,
        "nothing_turned",
        "nothing turned",
        &[("x", I32, &x)],
        &[("y", I32, &y)],
        &body,
    );
    let or_true = [
        "%h = arith.constant 0.5 : f32",
        "%zero = arith.constant 0.0 : f32",
        "%p = arith.cmpf une, %a0, %zero : f32",
        "%q = arith.cmpf une, %h, %zero : f32",
        "%o = arith.ori %p, %q : i1",
    ];
    for columns in [12_i64, 40] {
        let whole = [3, columns];
        let (input, output): (Tensor<'_>, Tensor<'_>) = (("x", F32, &whole), ("y", F32, &[3]));
        let of_x: [Read<'_>; 1] = [("x", &whole, F32, &[0, 1])];
        let lines = [&or_true[..], &["%r = arith.uitofp %o : i1 to f32"]].concat();
        let mut apart = structured("w", (2, &[]), &of_x, (&whole, F32, &[0, 1]), &lines);
        let of_w: [Read<'_>; 1] = [("w", &whole, F32, &[0, 1])];
        apart += &structured(
            "y",
            (2, &[1]),
            &of_w,
            (&[3], F32, &[0]),
            &["%r = arith.addf %s, %a0 : f32"],
        );
        add(
            cases,
            &format!("ones_summed_{columns}"),
            "ones summed",
            &[input],
            &[output],
            &apart,
        );
        let lines = [
            &or_true[..],
            &["%f = arith.uitofp %o : i1 to f32", "%r = arith.addf %s, %f : f32"],
        ]
        .concat();
        let inside = structured("y", (2, &[1]), &of_x, (&[3], F32, &[0]), &lines);
        add(
            cases,
            &format!("ones_summed_inside_{columns}"),
            "ones summed",
            &[input],
            &[output],
            &inside,
        );
    }
    let mut filled = "  %k = arith.constant 1.5 : f32\n  %e = tensor.empty() : tensor<3x12xf32>\n  \
                      %w = linalg.fill ins(%k : f32) outs(%e : tensor<3x12xf32>) -> tensor<3x12xf32>\n"
        .to_owned();
    let reads: [Read<'_>; 1] = [("w", &[3, 12], F32, &[0, 1])];
    filled += &structured(
        "t",
        (2, &[1]),
        &reads,
        (&[3], F32, &[0]),
        &["%r = arith.addf %s, %a0 : f32"],
    );
    let reads: [Read<'_>; 2] = [("t", &[3], F32, &[0]), ("x", &[3, 1], F32, &[0, 1])];
    filled += &structured(
        "y",
        (2, &[]),
        &reads,
        (&[3, 1], F32, &[0, 1]),
        &["%r = arith.addf %a0, %a1 : f32"],
    );
    add(
        cases,
        "filled_summed",
        "more than 18",
        &[("x", F32, &[3, 1])],
        &[("y", F32, &[3, 1])],
        &filled,
    );
}

/// Adds the sum of rows, each a separate tensor: with the result, the maximum number of buffers of
/// a kernel.
fn many(cases: &mut Named) {
    let names: Vec<String> = (0..11).map(|index| format!("x{index}")).collect();
    let dims = [8];
    let reads: Vec<Read<'_>> = names
        .iter()
        .map(|name| (name.as_str(), &dims[..], F32, &[0][..]))
        .collect();
    let mut lines: Vec<String> = (1..10)
        .map(|index| {
            format!(
                "%t{index} = arith.addf {}, %a{index} : f32",
                if index == 1 {
                    "%a0".to_owned()
                } else {
                    format!("%t{}", index - 1)
                }
            )
        })
        .collect();
    lines.push("%r = arith.addf %t9, %a10 : f32".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let body = structured("y", (1, &[]), &reads, (&dims, F32, &[0]), &lines);
    let inputs: Vec<Tensor<'_>> = names.iter().map(|name| (name.as_str(), F32, &dims[..])).collect();
    add(cases, "many_inputs", "sum of all", &inputs, &[("y", F32, &dims)], &body);
}

/// Adds products by an operation of the schema, which a body sums.
fn products_before(cases: &mut Named) {
    let mut b = GraphBuilder::new("products before");
    let (x, z) = (b.buffer("x", F16, &[6, 19]), b.buffer("z", Bf16, &[6, 19]));
    let products = b.virtual_tensor("products", F32, &[6, 19]);
    let y = b.buffer("y", F32, &[6]);
    b.pointwise(F32, PointwiseMode::Mul, &[x, z], products);
    let reads: [Read<'_>; 1] = [("x", &[6, 19], F32, &[0, 1])];
    let body = structured(
        "y",
        (2, &[1]),
        &reads,
        (&[6], F32, &[0]),
        &["%r = arith.addf %s, %a0 : f32"],
    );
    let body = format!(
        "// row totals\nfunc.func @f(%x: tensor<6x19xf32>) -> tensor<6xf32> {{\n{body}  return %y : tensor<6xf32>\n}}\n"
    );
    node(&mut b, &[products], &[y], body);
    cases.push(("custom_products_before".to_owned(), b.build()));
}

/// Returns all bodies.
pub(super) fn bodies() -> Named {
    let mut all = Named::new();
    let cases = &mut all;
    many(cases);
    products_before(cases);
    products(cases);
    beside_products(cases);
    constants(cases);
    let lines = [
        "%t = arith.truncf %a0 : f64 to f32",
        "%two = arith.constant 2.0 : f32",
        "%r = math.copysign %two, %t : f32",
    ];
    let body = structured(
        "y",
        (2, &[]),
        &[("x", &[5, 7], F64, &[0, 1])],
        (&[5, 7], F32, &[0, 1]),
        &lines,
    );
    let (input, output): (Tensor<'_>, Tensor<'_>) = (("x", F64, &[5, 7]), ("y", F32, &[5, 7]));
    add(cases, "sign_of_f64", "two with the sign", &[input], &[output], &body);
    all
}
