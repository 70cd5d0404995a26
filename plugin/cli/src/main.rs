//! The rotini command.
fn main() {}
