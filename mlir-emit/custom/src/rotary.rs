//! Rotary embeddings.
//!
//! hipDNN's public execution provider for ONNX Runtime requests rotary embeddings by a custom
//! operation `fusilli.rope` of x, cosines and sines, with a text in a dialect that rotini does not
//! parse. The text is always the same, down to its placeholders for types, so rotini recognizes it
//! by its hash and substitutes an equivalent body.

use crate::TensorType;
use crate::body::Element;

/// The operation's id.
pub const ID: &str = "fusilli.rope";

/// The hash of the text's 3,258 bytes.
const HASH: &str = "22c8dc49822658a4bc256e7d357120ddf44f0403f585a05e704902aa17184eaf";

/// Returns true if this is the known text.
#[must_use]
pub fn is_known(data: &[u8]) -> bool {
    blake3::hash(data).to_hex().as_str() == HASH
}

/// Returns the body that rotates x, [B, H, S, D], by angles given as cosines and sines, [S, D / 2]:
/// in each row the first half becomes x₁ cos − x₂ sin and the second half x₁ sin + x₂ cos, where x₁
/// and x₂ are the two halves of the row of x. It computes in f32, or in f64 if any tensor has that
/// type, and rounds once.
///
/// # Errors
///
/// Returns a sentence that describes the tensors that were found instead.
pub fn body(inputs: &[TensorType], outputs: &[TensorType]) -> Result<String, String> {
    let ([x, cosines, sines], [y]) = (inputs, outputs) else {
        return Err("a rotary embedding that is not one tensor from three".to_owned());
    };
    let &[batches, heads, rows, columns] = x.dims.as_slice() else {
        return Err(format!("a rotary embedding of {} axes, not 4", x.dims.len()));
    };
    let half = columns / 2;
    let angles = [rows, half];
    if columns % 2 != 0 || x.dims != y.dims || cosines.dims != angles || sines.dims != angles {
        return Err(format!(
            "a rotary embedding of {x} with {cosines} and {sines}, which are not halves of its rows, or not to its shape but {y}"
        ));
    }
    let types = [x, cosines, sines, y];
    if types.iter().any(|ty| !ty.element.is_float()) {
        return Err("a rotary embedding of integers".to_owned());
    }
    let compute = if types.iter().any(|ty| ty.element == Element::F64) {
        Element::F64
    } else {
        Element::F32
    };
    let part = TensorType {
        dims: vec![batches, heads, rows, half],
        element: x.element,
    };
    let halves = TensorType {
        dims: vec![batches, heads, rows, 2, half],
        element: y.element,
    };
    let names = ["a", "b", "c", "s"];
    let read = [&part, &part, cosines, sines];
    let (lines, wide): (Vec<String>, Vec<String>) = names
        .iter()
        .zip(read)
        .map(|(name, ty)| widened(name, ty.element, compute))
        .unzip();
    let [a, b, c, s] = wide.as_slice() else {
        return Err("an operand that is missing".to_owned());
    };
    let lines = lines.concat();
    let (element, compute) = (y.element.name(), compute.name());
    let arguments: String = names
        .iter()
        .zip(read)
        .map(|(name, ty)| format!("%{name}: {}, ", ty.element.name()))
        .collect();
    let rounded = match (compute, element) {
        (compute, element) if compute == element => "    linalg.yield %t : ".to_owned(),
        ("f64", "f16" | "bf16") => format!(
            "    %n = arith.truncf %t : f64 to f32\n    %r = arith.truncf %n : f32 to {element}\n    linalg.yield %r : "
        ),
        _ => format!("    %r = arith.truncf %t : {compute} to {element}\n    linalg.yield %r : "),
    };
    Ok(format!(
        "#row = affine_map<(b, h, r, p, d) -> (b, h, r, d)>\n\
         #angle = affine_map<(b, h, r, p, d) -> (r, d)>\n\
         #all = affine_map<(b, h, r, p, d) -> (b, h, r, p, d)>\n\
         func.func @rotary(%x: {x}, %cosines: {cosines}, %sines: {sines}) -> {y} {{\n  \
         %first = tensor.extract_slice %x[0, 0, 0, 0] [{batches}, {heads}, {rows}, {half}] [1, 1, 1, 1] : {x} to {part}\n  \
         %second = tensor.extract_slice %x[0, 0, 0, {half}] [{batches}, {heads}, {rows}, {half}] [1, 1, 1, 1] : {x} to {part}\n  \
         %empty = tensor.empty() : {halves}\n  \
         %halves = linalg.generic {{indexing_maps = [#row, #row, #angle, #angle, #all], \
         iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\", \"parallel\"]}} \
         ins(%first, %second, %cosines, %sines : {part}, {part}, {cosines}, {sines}) outs(%empty : {halves}) {{\n  \
         ^bb0({arguments}%unused: {element}):\n{lines}    \
         %p = linalg.index 3 : index\n    %zero = arith.constant 0 : index\n    %is_first = arith.cmpi eq, %p, %zero : index\n    \
         %ac = arith.mulf %{a}, %{c} : {compute}\n    %bs = arith.mulf %{b}, %{s} : {compute}\n    \
         %as = arith.mulf %{a}, %{s} : {compute}\n    %bc = arith.mulf %{b}, %{c} : {compute}\n    \
         %u = arith.subf %ac, %bs : {compute}\n    %v = arith.addf %as, %bc : {compute}\n    \
         %t = arith.select %is_first, %u, %v : {compute}\n{rounded}{element}\n  \
         }} -> {halves}\n  \
         %y = tensor.collapse_shape %halves [[0], [1], [2], [3, 4]] : {halves} into {y}\n  \
         return %y : {y}\n}}\n"
    ))
}

/// Emits the conversion of a value to a wider type. Returns the operation's text and the name of
/// the result.
fn widened(name: &str, from: Element, to: Element) -> (String, String) {
    let extended = |name: &str, from: Element, to: Element, result: &str| {
        format!(
            "    %{result} = arith.extf %{name} : {} to {}\n",
            from.name(),
            to.name()
        )
    };
    let wide = format!("{name}_wide");
    match (from, to) {
        (from, to) if from == to => (String::new(), name.to_owned()),
        (Element::F16 | Element::Bf16, Element::F64) => {
            let middle = format!("{name}_middle");
            let lines = extended(name, from, Element::F32, &middle) + &extended(&middle, Element::F32, to, &wide);
            (lines, wide)
        }
        _ => (extended(name, from, to, &wide), wide),
    }
}

#[cfg(test)]
mod tests {
    use super::{body, is_known};
    use crate::{Element, TensorType, read};

    fn tensor(element: Element, dims: &[i64]) -> TensorType {
        TensorType {
            dims: dims.to_vec(),
            element,
        }
    }

    #[test]
    fn the_body_is_one_that_is_allowed() {
        let floats = [Element::F16, Element::Bf16, Element::F32, Element::F64];
        for x in floats {
            for angle in floats {
                for y in floats {
                    let angles = tensor(angle, &[3, 4]);
                    let inputs = [tensor(x, &[2, 5, 3, 8]), angles.clone(), angles];
                    let outputs = [tensor(y, &[2, 5, 3, 8])];
                    let text = body(&inputs, &outputs).unwrap();
                    read(text.as_bytes(), &inputs, &outputs).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_declined() {
        let x = tensor(Element::F32, &[2, 5, 3, 8]);
        let angles = tensor(Element::F32, &[3, 4]);
        let whole = tensor(Element::F32, &[3, 8]);
        let outputs = [x.clone()];
        assert!(body(&[x.clone(), angles.clone(), whole], &outputs).is_err());
        assert!(body(&[x.clone(), angles.clone()], &outputs).is_err());
        let odd = tensor(Element::F32, &[2, 5, 3, 9]);
        assert!(body(&[odd.clone(), angles.clone(), angles.clone()], &[odd]).is_err());
        let flat = tensor(Element::F32, &[10, 3, 8]);
        assert!(body(&[flat.clone(), angles.clone(), angles.clone()], &[flat]).is_err());
        let other = tensor(Element::F32, &[2, 5, 3, 4]);
        assert!(body(&[x, angles.clone(), angles], &[other]).is_err());
    }

    #[test]
    fn other_texts_are_not_known() {
        assert!(!is_known(b""));
        assert!(!is_known(b"func.func private @{FUNC_NAME}("));
    }
}
