//! Prints the time model's record of kernels in code objects; the kernels run on zeroed buffers.
//!
//! Each line of stdin is a launch: `NAME CODE-OBJECT GRID-X GRID-Y GRID-Z ARGUMENT...`. An argument
//! is the size of a buffer in bytes, or `=NUMBER` for 32 bits by value. `lds=BYTES` is no kernel
//! argument: it sets the dynamic LDS. Each line of stdout is `NAME` and the record. `record
//! WORKGROUPS` limits the number of workgroups that run.

use std::error::Error;
use std::io::{BufRead, Write};

use rotini_gfx::{Block, CodeObject, Launch, Memory, Sample};

/// Buffers with large gaps between them. Their pages are not touched before a kernel needs them.
struct Buffers(Vec<(*mut u8, u64)>);

// SAFETY: a sampled launch has one thread.
unsafe impl Sync for Buffers {}

const APART: u64 = 1 << 40;

impl Memory for Buffers {
    fn block(&self, address: u64) -> Option<Block> {
        let index = usize::try_from((address / APART).checked_sub(1)?).ok()?;
        let &(host, bytes) = self.0.get(index)?;
        (address % APART < bytes).then_some(Block {
            address: (index as u64 + 1) * APART,
            bytes,
            host,
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let workgroups = std::env::args().nth(1).map_or(Ok(256), |count| count.parse())?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_ascii_whitespace();
        let mut next = || words.next().ok_or("a launch has a name, a file, a grid and buffers");
        let (name, file) = (next()?, next()?);
        let grid = [next()?.parse()?, next()?.parse()?, next()?.parse()?];
        let mut memory: Vec<Vec<u8>> = Vec::new();
        let mut kernarg: Vec<u8> = Vec::new();
        let mut dynamic_lds = 0;
        for word in words {
            if let Some(bytes) = word.strip_prefix("lds=") {
                dynamic_lds = bytes.parse()?;
            } else if let Some(number) = word.strip_prefix('=') {
                kernarg.extend(number.parse::<u32>()?.to_le_bytes());
            } else {
                memory.push(vec![0; word.parse()?]);
                kernarg.resize(kernarg.len().next_multiple_of(8), 0);
                kernarg.extend((memory.len() as u64 * APART).to_le_bytes());
            }
        }
        let buffers = Buffers(memory.iter_mut().map(|m| (m.as_mut_ptr(), m.len() as u64)).collect());
        let object = CodeObject::parse(&std::fs::read(file)?)?;
        let kernel = object.kernels().first().ok_or("no kernel")?;
        kernarg.resize(kernarg.len().max(kernel.kernarg_bytes as usize), 0);
        let launch = Launch {
            kernel,
            grid,
            // Triton's kernels state only the maximum workgroup size, which they always use.
            block: kernel.required_workgroup.unwrap_or([kernel.max_workgroup, 1, 1]),
            dynamic_lds,
            kernarg: &kernarg,
            memory: &buffers,
            strict: false,
            threads: 1,
            order: None,
            limit: None,
            sample: Some(Sample {
                workgroups,
                window: None,
                enough: Sample::ENOUGH,
            }),
        };
        let report = launch.run().map_err(|fault| format!("{name}: {fault}"))?;
        let record = report.record.ok_or("no record")?;
        writeln!(std::io::stdout(), "{name} {}", serde_json::to_string(&*record)?)?;
    }
    Ok(())
}
