//! Translates the emitter's text in IREE's own syntax to forms that MLIR alone can read.
//!
//! Almost everything is emitted in MLIR's generic form, which can be parsed without its dialect.
//! The rest is the shell around it: the exported function, and the executables around kernels.
//! [`RULES`] has a rule for each line of the shell. IREE's modules and functions become MLIR's, so
//! that their contents, results and calls are verified; IREE's other operations become generic, and
//! only their uses and operand types are verified.
//!
//! Each line becomes one line, so a diagnostic's line number is that of the emitted text. An
//! unknown line is an error. So is an operation of an unknown dialect: where unregistered dialects
//! are allowed, MLIR would accept a misspelt name as an operation of one of these.

use crate::reason::Reason;
use anyhow::{Context as _, Result, bail};

/// Lines in IREE's syntax, and their translations. A `$` matches any text; `$0` is the first match.
/// If two rules match, the first applies.
const RULES: [(&str, &str); 12] = [
    (
        "hal.executable.source private @$ {",
        r#"builtin.module @$0 attributes {sym_visibility = "private"} {"#,
    ),
    (
        "hal.executable.export public @$ ordinal($) layout($) count($) -> $ {",
        "func.func @$0($3) -> $4 attributes {ordinal = $1 : index, layout = $2} {",
    ),
    ("hal.return $", "func.return $0"),
    (
        "$ = hal.interface.workgroup.id[$] : $",
        r#"$0 = "hal.interface.workgroup.id"() {dimension = $1 : index} : () -> ($2)"#,
    ),
    (
        "$ = hal.interface.binding.subspan layout($) binding($) alignment($) offset($) flags($) : $",
        r#"$0 = "hal.interface.binding.subspan"($4) {layout = $1, binding = $2 : index, alignment = $3 : index, flags = "$5"} : (index) -> ($6)"#,
    ),
    (
        "$ = hal.interface.binding.subspan layout($) binding($) alignment($) offset($) : $",
        r#"$0 = "hal.interface.binding.subspan"($4) {layout = $1, binding = $2 : index, alignment = $3 : index} : (index) -> ($5)"#,
    ),
    (
        "util.func public @$($) attributes {iree.abi.stub} {",
        "func.func @$0($1) attributes {iree.abi.stub} {",
    ),
    ("util.return", "func.return"),
    (
        "$ = hal.tensor.import wait($) => $ : $ -> $",
        r#"$0 = "hal.tensor.import"($2, $1) : ($3, !hal.fence) -> ($4)"#,
    ),
    (
        "$ = hal.tensor.alias wait($) => $ : $ to $ : $",
        r#"$0 = "hal.tensor.alias"($2, $4, $1) : ($3, $5, !hal.fence) -> ($3)"#,
    ),
    (
        "$ = hal.tensor.transients $ : $ from $ : $",
        r#"$0 = "hal.tensor.transients"($1, $3) : ($2, $4) -> ($2)"#,
    ),
    (
        "$ = hal.tensor.barrier join($ : $) => $ : $",
        r#"$0 = "hal.tensor.barrier"($1, $3) : ($2, $4) -> ($2)"#,
    ),
];

/// Texts that IREE's version of MLIR writes differently from LLVM 22, and LLVM 22's form. A newer
/// melior would need fewer of these.
const OLDER: [(&str, &str); 4] = [
    ("#amdgpu.dpp_perm<", "#amdgpu<dpp_perm "),
    ("#gpu.shuffle_mode<", "#gpu<shuffle_mode "),
    ("#rocdl.mfma_perm_b<", "#amdgpu<mfma_perm_b "),
    ("#rocdl.sched_group_mask<none>", "0 : i32"),
];

/// Operations that are emitted in the syntax of their dialect, which MLIR supports.
const UPSTREAM_SYNTAX: [&str; 8] = [
    "arith.bitcast",
    "arith.constant",
    "arith.trunci",
    "builtin.module",
    "func.call",
    "func.func",
    "gpu.thread_id",
    "module",
];

/// MLIR's dialects whose operations are emitted in generic form. MLIR refuses operations that these
/// dialects do not have.
const UPSTREAM: [&str; 11] = [
    "amdgpu", "arith", "func", "gpu", "linalg", "math", "memref", "rocdl", "scf", "tensor", "vector",
];

/// IREE's operations that are emitted in generic form.
const IREE: [&str; 7] = [
    "flow.dispatch",
    "flow.dispatch.region",
    "flow.return",
    "iree_linalg_ext.gather",
    "iree_linalg_ext.online_attention",
    "iree_linalg_ext.yield",
    "iree_tensor_ext.compute_barrier.start",
];

/// Translates an emitted module to syntax that needs none of IREE's dialects.
///
/// # Errors
///
/// If a line or an operation is unknown.
pub(crate) fn without_iree(module: &str) -> Result<String, Reason> {
    let mut text = String::with_capacity(module.len() + module.len() / 8);
    // Stack of open regions of operations in generic form: whether each operation is IREE's.
    let mut open = Vec::new();
    for (number, line) in module.lines().enumerate() {
        push_line(&mut text, line.trim(), &mut open).map_err(|error| Reason {
            what: error.to_string(),
            place: format!("line {}: {}", number + 1, line.trim()),
        })?;
        text.push('\n');
    }
    Ok(text)
}

fn push_line(text: &mut String, line: &str, open: &mut Vec<bool>) -> Result<()> {
    // The second region of `flow.dispatch.region` is empty.
    for end in ["})", "}, {})"] {
        let Some(after) = line.strip_prefix(end) else { continue };
        let is_iree = open.pop().context("the end of a region that is not open")?;
        // MLIR treats an unknown operation with one region as a possible symbol table, and then
        // refuses the function around it. A second region rules that out.
        text.push_str(if is_iree { "}, {})" } else { end });
        text.push_str(after);
        return Ok(());
    }
    if ["", "}", "}, {"].contains(&line) || line.starts_with("^bb") {
        text.push_str(line);
        return Ok(());
    }
    let operation = match line.strip_prefix('%') {
        Some(_) => line.split_once(" = ").context("a value without an operation")?.1,
        None => line,
    };
    if let Some(name) = operation.strip_prefix('"') {
        let (name, _) = name.split_once("\"(").context("an operation without operands")?;
        let is_iree = is_iree(name)?;
        if line.ends_with("({") {
            open.push(is_iree);
        }
        push_older(text, line);
        return Ok(());
    }
    let name = operation.split(' ').next().unwrap_or_default();
    if UPSTREAM_SYNTAX.contains(&name) {
        text.push_str(line);
        return Ok(());
    }
    for (from, to) in RULES {
        if let Some(holes) = holes(from, line) {
            fill(text, to, &holes);
            return Ok(());
        }
    }
    bail!("a line that src/shell.rs does not know")
}

/// Writes an operation in LLVM 22's form.
fn push_older(text: &mut String, line: &str) {
    for (newer, older) in OLDER {
        if let Some((before, after)) = line.split_once(newer) {
            text.push_str(before);
            text.push_str(older);
            text.push_str(after);
            return;
        }
    }
    text.push_str(line);
}

/// Returns true if an operation is IREE's, and false if it is MLIR's.
fn is_iree(name: &str) -> Result<bool> {
    if IREE.contains(&name) {
        return Ok(true);
    }
    let dialect = name.split('.').next().unwrap_or_default();
    if UPSTREAM.contains(&dialect) {
        return Ok(false);
    }
    bail!("an operation that src/shell.rs does not know: {name}")
}

/// Returns the match of each `$` of a rule, if the line matches. Each match is as short as
/// possible, except for the last one, which takes the rest.
fn holes<'l>(rule: &str, line: &'l str) -> Option<Vec<&'l str>> {
    let mut literals = rule.split('$');
    let mut rest = line.strip_prefix(literals.next()?)?;
    let mut holes = Vec::new();
    while let Some(literal) = literals.next() {
        let is_last = literals.clone().next().is_none();
        let at = match (is_last, literal) {
            (true, _) => rest.len().checked_sub(literal.len())?,
            (false, literal) => rest.find(literal)?,
        };
        let (hole, after) = rest.split_at_checked(at)?;
        rest = after.strip_prefix(literal)?;
        holes.push(hole);
    }
    rest.is_empty().then_some(holes)
}

/// Writes a line's translation, with the matches inserted.
fn fill(text: &mut String, to: &str, holes: &[&str]) {
    let mut parts = to.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (number, after) = part.split_at(1);
        let number: usize = number.parse().expect("a rule has a digit after each $");
        text.push_str(holes[number]);
        text.push_str(after);
    }
}
