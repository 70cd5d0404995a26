//! What graphs become, without the bodies of rotini's kernels: nobody reads a thousand operations
//! in a snapshot. A kernel that changes is executed again (`tests/proven`).

use rotini_emit::{Target, emit};
use rotini_graph::Graph;

/// The module of a graph for a target, in which the body of each kernel is the number of its lines.
pub(crate) fn lowered(mut graph: Graph, target: &str) -> String {
    graph.validate().expect("the graph is valid");
    let target = Target::parse(target).expect("a known target");
    let mlir = emit(&graph.normalise().0, &target)
        .expect("the graph is supported")
        .mlir;
    let (mut text, mut body) = (String::new(), None::<usize>);
    for line in mlir.lines() {
        match body {
            Some(count) if line == "      }" => {
                text += &format!("        // {count} lines\n{line}\n");
                body = None;
            }
            Some(count) => body = Some(count + 1),
            None => {
                text += line;
                text.push('\n');
                body = line.starts_with("      func.func @").then_some(0);
            }
        }
    }
    text
}
