//! Decodes code objects (`cargo run -p rotini-gfx --example decode -- FILE...`), assembles the texts again, and lists what is not
//! understood or comes back as other bytes, by frequency.

use std::{collections::BTreeMap, env, fs};

use rotini_gfx::{CodeObject, DecodeError};

#[allow(clippy::print_stdout, reason = "the output of a tool")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut kernels, mut instructions) = (0, 0);
    let mut missing = BTreeMap::<String, (usize, String)>::new();
    for path in env::args().skip(1) {
        let object = CodeObject::parse(&fs::read(&path)?).map_err(|error| format!("{path}: {error}"))?;
        for kernel in object.kernels() {
            kernels += 1;
            match kernel.reassemble().and_then(|()| kernel.decode()) {
                Ok(count) => instructions += count,
                Err(DecodeError::Instruction { what, instruction, .. }) => {
                    missing.entry(what).or_insert((0, format!("{instruction}  ({path})"))).0 += 1;
                }
                Err(DecodeError::Reassembly { what, .. }) => {
                    missing.entry(what).or_insert((0, format!("other bytes  ({path})"))).0 += 1;
                }
                Err(error) => return Err(format!("{path}: {error}").into()),
            }
        }
    }
    println!("{kernels} kernels, {instructions} instructions decoded and assembled");
    for (what, (count, example)) in missing {
        println!("{count:6} {what}: {example}");
    }
    Ok(())
}
