//! Runs one f16 NHWC convolution kernel and holds it against a direct sum: `conv FILE.hsaco n h c k r threads [strict]`.

use std::{env, fs};

use half::f16;
use rotini_gfx::{Block, CodeObject, Launch, Memory};

/// Allocations by device address.
struct Arena(Vec<(u64, Vec<u8>)>);

impl Memory for Arena {
    fn block(&self, address: u64) -> Option<Block> {
        let (start, bytes) = self
            .0
            .iter()
            .find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&address))?;
        Some(Block {
            address: *start,
            bytes: bytes.len() as u64,
            host: bytes.as_ptr().cast_mut(),
        })
    }
}

#[allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| arguments[index].parse::<usize>().unwrap();
    let object = CodeObject::parse(&fs::read(&arguments[0])?)?;
    let kernel = &object.kernels()[0];
    let (n, h, c, k, r) = (number(1), number(2), number(3), number(4), number(5));
    let grid: Vec<u32> = arguments[6].split('x').map(|v| v.parse().unwrap()).collect();
    let value = |i: usize, m: usize| f16::from_f32(((i * 7 + i / 13) % m) as f32 / m as f32 - 0.5);
    let tensor = |len: usize, m: usize| (0..len).map(|i| value(i, m)).collect::<Vec<f16>>();
    let (x, w, b) = (tensor(n * h * h * c, 31), tensor(k * r * r * c, 29), tensor(k, 5));
    let bytes = |v: &[f16]| v.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect::<Vec<u8>>();
    let out_len = n * h * h * k * 2;
    let arena = Arena(vec![
        (0x1_0000_0000, bytes(&x)),
        (0x2_0000_0000, bytes(&w)),
        (0x3_0000_0000, bytes(&b)),
        (0x4_0000_0000, vec![0; out_len]),
    ]);
    let kernarg: Vec<u8> = arena.0.iter().flat_map(|(a, _)| a.to_le_bytes()).collect();
    let launch = Launch {
        kernel,
        grid: [grid[0], grid[1], grid[2]],
        block: kernel.required_workgroup.unwrap_or([64, 1, 1]),
        dynamic_lds: 0,
        kernarg: &kernarg,
        memory: &arena,
        strict: arguments.iter().any(|a| a == "strict"),
        threads: number(7),
        limit: None,
    };
    kernel.decode()?;
    let report = launch.run()?;
    println!("{report:#?}");
    let rate = report.total() as f64 / report.time.as_secs_f64() / launch.threads as f64 / 1e6;
    println!("{rate:.1} million wave-instructions a second and thread");
    let out = &arena.0[3].1;
    let mut worst = 0.0_f32;
    let step = (n * h * h * k / 5000).max(1);
    let pad = r / 2;
    for i in (0..n * h * h * k).step_by(step) {
        let (ko, xx, yy, nn) = (i % k, i / k % h, i / k / h % h, i / k / h / h);
        let mut sum = 0.0_f32;
        for dy in 0..r {
            for dx in 0..r {
                let (sy, sx) = ((yy + dy).wrapping_sub(pad), (xx + dx).wrapping_sub(pad));
                if sy >= h || sx >= h {
                    continue;
                }
                for cc in 0..c {
                    let a = x[((nn * h + sy) * h + sx) * c + cc].to_f32();
                    sum += a * w[((ko * r + dy) * r + dx) * c + cc].to_f32();
                }
            }
        }
        let expected = (sum + b[ko].to_f32()).max(0.0);
        let got = f16::from_bits(u16::from_le_bytes([out[2 * i], out[2 * i + 1]])).to_f32();
        let difference = (got - expected).abs() / expected.abs().max(1.0);
        if difference > 0.01 && worst <= 0.01 {
            println!("first difference at {i}: {got} instead of {expected}");
        }
        worst = worst.max(difference);
    }
    println!("largest difference {worst}");
    Ok(())
}
