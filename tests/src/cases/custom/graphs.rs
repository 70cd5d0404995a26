//! Bodies of custom operations in MLIR, and graphs of one such operation.

use rotini_graph::{CustomOp, DataType, Graph, GraphBuilder, TensorId};

const F32: DataType = DataType::F32;

/// Adds a custom operation.
pub(crate) fn node(b: &mut GraphBuilder, inputs: &[TensorId], outputs: &[TensorId], body: impl Into<Vec<u8>>) {
    let op = CustomOp {
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
        custom_op_id: "rotini.mlir".to_owned(),
        data: body.into(),
    };
    b.node("custom", F32, op);
}

/// Returns the MLIR type of elements.
pub(crate) fn element(dtype: DataType) -> String {
    match dtype {
        DataType::U8 => "i8".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the MLIR type of a tensor.
pub(crate) fn tensor(dtype: DataType, dims: &[i64]) -> String {
    let extents: String = dims.iter().map(|extent| format!("{extent}x")).collect();
    format!("tensor<{extents}{}>", element(dtype))
}

/// Returns an affine map to some of the loops.
pub(crate) fn map(loops: usize, results: &[usize]) -> String {
    let list = |indices: &mut dyn Iterator<Item = usize>| -> String {
        indices.map(|index| format!("d{index}")).collect::<Vec<_>>().join(", ")
    };
    format!(
        "affine_map<({}) -> ({})>",
        list(&mut (0..loops)),
        list(&mut results.iter().copied())
    )
}

/// Returns a statement that widens an element to f32, and the name of the result.
fn widened(name: &str, dtype: DataType) -> (String, String) {
    match dtype {
        DataType::F16 | DataType::Bf16 => (
            format!("    %wide_{name} = arith.extf %{name} : {dtype} to f32\n"),
            format!("%wide_{name}"),
        ),
        _ => (String::new(), format!("%{name}")),
    }
}

/// Returns the statements that round the f32 `%r` to the result's type and yield it.
fn yielded(dtype: DataType) -> String {
    match dtype {
        DataType::F16 | DataType::Bf16 => {
            format!("    %s = arith.truncf %r : f32 to {dtype}\n    linalg.yield %s : {dtype}\n")
        }
        _ => format!("    linalg.yield %r : {dtype}\n"),
    }
}

/// Returns an elementwise function of one tensor: `compute` gets the name of %x and returns
/// statements that compute %r.
pub(crate) fn unary(name: &str, dtype: DataType, dims: &[i64], compute: impl Fn(&str) -> String) -> String {
    let ty = tensor(dtype, dims);
    let identity = map(dims.len(), &(0..dims.len()).collect::<Vec<_>>());
    let loops = vec!["\"parallel\""; dims.len()].join(", ");
    let (widen, x) = widened("x", dtype);
    format!(
        "// {name}\n\
         func.func @{}(%in: {ty}) -> {ty} {{\n  \
           %e = tensor.empty() : {ty}\n  \
           %0 = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{loops}]}} \
                  ins(%in : {ty}) outs(%e : {ty}) {{\n  \
           ^bb0(%x: {dtype}, %o: {dtype}):\n\
         {widen}{}{}  \
           }} -> {ty}\n  \
           return %0 : {ty}\n}}\n",
        name.replace(' ', "_"),
        compute(&x),
        yielded(dtype)
    )
}

/// GELU by erf, in f32.
pub(crate) fn gelu(dtype: DataType, dims: &[i64]) -> String {
    unary("gelu", dtype, dims, |x| {
        format!(
            "    %half = arith.constant 0.5 : f32\n    %one = arith.constant 1.0 : f32\n    %c = arith.constant 0.70710678118654752 : f32\n    \
             %t = arith.mulf {x}, %c : f32\n    %f = math.erf %t : f32\n    %g = arith.addf %f, %one : f32\n    \
             %h = arith.mulf {x}, %half : f32\n    %r = arith.mulf %h, %g : f32\n"
        )
    })
}

/// Returns an operation that combines the rows of a matrix by `combiner`, starting at `start`,
/// without their axis.
pub(crate) fn row(result: &str, combiner: &str, start: &str, [rows, columns]: [i64; 2]) -> String {
    let (from, line, to) = (
        tensor(F32, &[rows, columns]),
        tensor(F32, &[rows]),
        tensor(F32, &[rows, 1]),
    );
    let (read, written) = (map(2, &[0, 1]), map(2, &[0]));
    format!(
        "  %start_{result} = arith.constant {start} : f32\n  %empty_{result} = tensor.empty() : {line}\n  \
           %fill_{result} = linalg.fill ins(%start_{result} : f32) outs(%empty_{result} : {line}) -> {line}\n  \
           %line_{result} = linalg.generic {{indexing_maps = [{read}, {written}], iterator_types = [\"parallel\", \"reduction\"]}} \
                  ins(%x : {from}) outs(%fill_{result} : {line}) {{\n  ^bb0(%e: f32, %a: f32):\n    \
             %r = {combiner} %a, %e : f32\n    linalg.yield %r : f32\n  }} -> {line}\n  \
           %{result} = tensor.expand_shape %line_{result} [[0, 1]] output_shape [{rows}, 1] : {line} into {to}\n"
    )
}

pub(crate) fn row_sums(dims: [i64; 2]) -> String {
    let (from, to) = (tensor(F32, &dims), tensor(F32, &[dims[0], 1]));
    let sum = row("sum", "arith.addf", "0.0", dims);
    format!("// row sums\nfunc.func @f(%x: {from}) -> {to} {{\n{sum}  return %sum : {to}\n}}\n")
}

pub(crate) fn row_sums_and_maxima(dims: [i64; 2]) -> String {
    let (from, to) = (tensor(F32, &dims), tensor(F32, &[dims[0], 1]));
    let (sum, most) = (
        row("sum", "arith.addf", "0.0", dims),
        row("most", "arith.maximumf", "0xFF800000", dims),
    );
    format!(
        "// row sums and maxima\nfunc.func @f(%x: {from}) -> ({to}, {to}) {{\n{sum}{most}  return %sum, %most : {to}, {to}\n}}\n"
    )
}

/// x + z², where z is a single row that is broadcast.
pub(crate) fn add_square(dtype: DataType, [rows, columns]: [i64; 2]) -> String {
    let (full, one, line) = (
        tensor(dtype, &[rows, columns]),
        tensor(dtype, &[1, columns]),
        tensor(dtype, &[columns]),
    );
    let (identity, last) = (map(2, &[0, 1]), map(2, &[1]));
    let ((widen_x, x), (widen_z, z)) = (widened("x", dtype), widened("z", dtype));
    format!(
        "// add square\n#all = {identity}\n\nfunc.func @f(%a: {full}, %b: {one}) -> {full} {{\n  \
         %line = tensor.collapse_shape %b [[0, 1]] : {one} into {line}\n  %e = tensor.empty() : {full}\n  \
         %0 = linalg.generic {{indexing_maps = [#all, {last}, #all], iterator_types = [\"parallel\", \"parallel\"]}} \
         ins(%a, %line : {full}, {line}) outs(%e : {full}) {{\n  ^bb0(%x: {dtype}, %z: {dtype}, %o: {dtype}):\n\
         {widen_x}{widen_z}    %q = arith.mulf {z}, {z} : f32\n    %r = arith.addf {x}, %q : f32\n{}  }} -> {full}\n  \
         return %0 : {full}\n}}\n",
        yielded(dtype)
    )
}

pub(crate) fn product([rows, inner, columns]: [i64; 3]) -> String {
    let (a, b, c) = (
        tensor(F32, &[rows, inner]),
        tensor(F32, &[inner, columns]),
        tensor(F32, &[rows, columns]),
    );
    let maps = [map(3, &[0, 2]), map(3, &[2, 1]), map(3, &[0, 1])].join(", ");
    format!(
        "// product\nfunc.func @f(%a: {a}, %b: {b}) -> {c} {{\n  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : {c}\n  \
         %z = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}\n  \
         %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}} \
         ins(%a, %b : {a}, {b}) outs(%z : {c}) {{\n  ^bb0(%x: f32, %y: f32, %s: f32):\n    \
         %p = arith.mulf %x, %y : f32\n    %r = arith.addf %s, %p : f32\n    linalg.yield %r : f32\n  }} -> {c}\n  return %0 : {c}\n}}\n"
    )
}

pub(crate) fn transposed([rows, columns]: [i64; 2]) -> String {
    let (from, to) = (tensor(F32, &[rows, columns]), tensor(F32, &[columns, rows]));
    format!(
        "// transposed\nfunc.func @f(%a: {from}) -> {to} {{\n  %e = tensor.empty() : {to}\n  \
         %0 = linalg.generic {{indexing_maps = [{}, {}], iterator_types = [\"parallel\", \"parallel\"]}} ins(%a : {from}) outs(%e : {to}) {{\n  \
         ^bb0(%x: f32, %o: f32):\n    linalg.yield %x : f32\n  }} -> {to}\n  return %0 : {to}\n}}\n",
        map(2, &[1, 0]),
        map(2, &[0, 1])
    )
}

pub(crate) fn odd_rows([rows, columns]: [i64; 2]) -> String {
    let (from, to) = (tensor(F32, &[rows, columns]), tensor(F32, &[rows / 2, columns]));
    format!(
        "// odd rows\nfunc.func @f(%a: {from}) -> {to} {{\n  \
         %0 = tensor.extract_slice %a[1, 0] [{}, {columns}] [2, 1] : {from} to {to}\n  return %0 : {to}\n}}\n",
        rows / 2
    )
}

/// x + z², where z is a single row that is broadcast, read at a constant index.
pub(crate) fn add_square_of_a_row(dtype: DataType, [rows, columns]: [i64; 2]) -> String {
    let (full, one) = (tensor(dtype, &[rows, columns]), tensor(dtype, &[1, columns]));
    let ((widen_x, x), (widen_z, z)) = (widened("x", dtype), widened("z", dtype));
    format!(
        "// add square\n#all = affine_map<(i, j) -> (i, j)>\n\nfunc.func @f(%a: {full}, %b: {one}) -> {full} {{\n  \
         %e = tensor.empty() : {full}\n  \
         %0 = linalg.generic {{iterator_types = [\"parallel\", \"parallel\"], indexing_maps = [#all, affine_map<(i, j) -> (0, j)>, #all]}} \
         ins(%a, %b : {full}, {one}) outs(%e : {full}) {{\n  ^bb0(%x: {dtype}, %z: {dtype}, %o: {dtype}):\n\
         {widen_x}{widen_z}    %q = arith.mulf {z}, {z} : f32\n    %r = arith.addf {x}, %q : f32\n{}  }} -> {full}\n  \
         return %0 : {full}\n}}\n",
        yielded(dtype)
    )
}

/// Adds the third row to each row.
pub(crate) fn third_row_added([rows, columns]: [i64; 2]) -> String {
    let full = tensor(F32, &[rows, columns]);
    format!(
        "// third row added\n#all = affine_map<(i, j) -> (i, j)>\nfunc.func @f(%a: {full}) -> {full} {{\n  %e = tensor.empty() : {full}\n  \
         %0 = linalg.generic {{indexing_maps = [#all, affine_map<(i, j) -> (2, j)>, #all], iterator_types = [\"parallel\", \"parallel\"]}} \
         ins(%a, %a : {full}, {full}) outs(%e : {full}) {{\n  ^bb0(%x: f32, %z: f32, %o: f32):\n    \
         %r = arith.addf %x, %z : f32\n    linalg.yield %r : f32\n  }} -> {full}\n  return %0 : {full}\n}}\n"
    )
}

/// The sums of a matrix's rows, with their axis kept.
pub(crate) fn row_sums_in_place([rows, columns]: [i64; 2]) -> String {
    let (from, to) = (tensor(F32, &[rows, columns]), tensor(F32, &[rows, 1]));
    format!(
        "// row sums\nfunc.func @f(%a: {from}) -> {to} {{\n  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : {to}\n  \
         %z = linalg.fill ins(%zero : f32) outs(%e : {to}) -> {to}\n  \
         %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>], \
         iterator_types = [\"parallel\", \"reduction\"]}} ins(%a : {from}) outs(%z : {to}) {{\n  ^bb0(%x: f32, %s: f32):\n    \
         %r = arith.addf %x, %s : f32\n    linalg.yield %r : f32\n  }} -> {to}\n  return %0 : {to}\n}}\n"
    )
}

/// Concatenates tensors along an axis.
pub(crate) fn joined(dtype: DataType, axis: usize, parts: &[&[i64]]) -> Graph {
    let mut dims = parts[0].to_vec();
    dims[axis] = parts.iter().map(|part| part[axis]).sum();
    let types: Vec<String> = parts.iter().map(|part| tensor(dtype, part)).collect();
    let list = |item: &dyn Fn(usize) -> String| (0..parts.len()).map(item).collect::<Vec<_>>().join(", ");
    let to = tensor(dtype, &dims);
    let body = format!(
        "// joined along {axis}\nfunc.func @f({}) -> {to} {{\n  %y = tensor.concat dim({axis}) {} : ({}) -> {to}\n  return %y : {to}\n}}\n",
        list(&|index| format!("%a{index}: {}", types[index])),
        list(&|index| format!("%a{index}")),
        list(&|index| types[index].clone())
    );
    let inputs: Vec<_> = parts.iter().map(|part| (dtype, *part)).collect();
    alone(&inputs, &[(dtype, &dims)], body)
}

/// Rotary embedding by angles per position; the arrays give the types of x, angles and y, and x's
/// dims.
pub(crate) fn rotary([x, angle, y]: [DataType; 3], dims: [i64; 4]) -> Graph {
    let element = |dtype| match dtype {
        DataType::F16 => rotini_custom::Element::F16,
        DataType::Bf16 => rotini_custom::Element::Bf16,
        DataType::F64 => rotini_custom::Element::F64,
        _ => rotini_custom::Element::F32,
    };
    let ty = |dtype, dims: &[i64]| rotini_custom::TensorType {
        dims: dims.to_vec(),
        element: element(dtype),
    };
    let angles = [dims[2], dims[3] / 2];
    let inputs = [ty(x, &dims), ty(angle, &angles), ty(angle, &angles)];
    let body = rotini_custom::rotary::body(&inputs, &[ty(y, &dims)]).unwrap_or_default();
    alone(
        &[(x, &dims), (angle, &angles), (angle, &angles)],
        &[(y, &dims)],
        format!("// rotary\n{body}"),
    )
}

/// Elementwise function of two tensors, by one operation in f32.
pub(crate) fn paired(name: &str, operation: &str, dtype: DataType, dims: &[i64]) -> Graph {
    let ty = tensor(dtype, dims);
    let identity = map(dims.len(), &(0..dims.len()).collect::<Vec<_>>());
    let loops = vec!["\"parallel\""; dims.len()].join(", ");
    let ((widen_x, x), (widen_z, z)) = (widened("x", dtype), widened("z", dtype));
    let compute = if dtype == DataType::F64 { "f64" } else { "f32" };
    let body = format!(
        "// {name}\nfunc.func @f(%a: {ty}, %b: {ty}) -> {ty} {{\n  %e = tensor.empty() : {ty}\n  \
         %0 = linalg.generic {{indexing_maps = [{identity}, {identity}, {identity}], iterator_types = [{loops}]}} \
         ins(%a, %b : {ty}, {ty}) outs(%e : {ty}) {{\n  ^bb0(%x: {dtype}, %z: {dtype}, %o: {dtype}):\n{widen_x}{widen_z}    \
         %r = {operation} {x}, {z} : {compute}\n{}  }} -> {ty}\n  return %0 : {ty}\n}}\n",
        yielded(dtype)
    );
    alone(&[(dtype, dims), (dtype, dims)], &[(dtype, dims)], body)
}

/// Maximum of each row, in f32.
pub(crate) fn row_maxima(dtype: DataType, [rows, columns]: [i64; 2]) -> Graph {
    let (from, to) = (tensor(dtype, &[rows, columns]), tensor(F32, &[rows, 1]));
    let (widen, x) = widened("x", dtype);
    let body = format!(
        "// row maxima\nfunc.func @f(%a: {from}) -> {to} {{\n  %least = arith.constant 0xFF800000 : f32\n  %e = tensor.empty() : {to}\n  \
         %z = linalg.fill ins(%least : f32) outs(%e : {to}) -> {to}\n  \
         %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>], \
         iterator_types = [\"parallel\", \"reduction\"]}} ins(%a : {from}) outs(%z : {to}) {{\n  ^bb0(%x: {dtype}, %s: f32):\n{widen}    \
         %r = arith.maxnumf {x}, %s : f32\n    linalg.yield %r : f32\n  }} -> {to}\n  return %0 : {to}\n}}\n"
    );
    alone(&[(dtype, &[rows, columns])], &[(F32, &[rows, 1])], body)
}

/// Builds a graph of one operation on buffers.
pub(crate) fn alone(inputs: &[(DataType, &[i64])], outputs: &[(DataType, &[i64])], body: String) -> Graph {
    let mut b = GraphBuilder::new("custom");
    let mut buffers = |tensors: &[(DataType, &[i64])], name: &str| -> Vec<TensorId> {
        (0..)
            .zip(tensors)
            .map(|(index, (dtype, dims))| b.buffer(&format!("{name}{index}"), *dtype, dims))
            .collect()
    };
    let (inputs, outputs) = (buffers(inputs, "x"), buffers(outputs, "y"));
    node(&mut b, &inputs, &outputs, body);
    b.build()
}
