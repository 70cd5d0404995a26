//! Runs one f16 NHWC convolution kernel and compares its result with a direct sum: `conv FILE.hsaco
//! n h c k r GRID threads [strict] [full]`.
//!
//! The tensors are filled as in the conformance suite, with multiples of 1/256 and weights that are
//! multiples of 1/4, so that no sum rounds; with `full` they use all bits of f16.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::{env, fs};

use half::f16;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rotini_gfx::{Block, CodeObject, Launch, Memory};

/// An allocation: device address, bytes, and host address.
struct Allocation(u64, u64, AtomicPtr<u8>);

impl Allocation {
    /// Returns an allocation that lasts until the program ends.
    fn new(address: u64, bytes: Vec<u8>) -> Self {
        Allocation(address, bytes.len() as u64, AtomicPtr::new(bytes.leak().as_mut_ptr()))
    }
}

struct Arena([Allocation; 4]);

impl Memory for Arena {
    fn block(&self, address: u64) -> Option<Block> {
        let Allocation(start, bytes, host) = self
            .0
            .iter()
            .find(|Allocation(start, bytes, _)| (*start..start + bytes).contains(&address))?;
        Some(Block {
            address: *start,
            bytes: *bytes,
            host: host.load(Ordering::Relaxed),
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
    let asked = |option: &str| arguments.iter().any(|argument| argument == option);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut tensor = |len: usize, steps: i32| {
        let mut value = || match asked("full") {
            true => random.random_range(-1.0..1.0),
            false => random.random_range(-steps..=steps) as f32 / steps as f32,
        };
        (0..len).map(|_| f16::from_f32(value())).collect::<Vec<f16>>()
    };
    let (x, w, b) = (tensor(n * h * h * c, 256), tensor(k * r * r * c, 4), tensor(k, 256));
    let bytes = |v: &[f16]| v.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect::<Vec<u8>>();
    let out_len = n * h * h * k * 2;
    let arena = Arena([
        Allocation::new(0x1_0000_0000, bytes(&x)),
        Allocation::new(0x2_0000_0000, bytes(&w)),
        Allocation::new(0x3_0000_0000, bytes(&b)),
        Allocation::new(0x4_0000_0000, vec![0; out_len]),
    ]);
    let kernarg: Vec<u8> = arena.0.iter().flat_map(|each| each.0.to_le_bytes()).collect();
    let launch = Launch {
        kernel,
        grid: [grid[0], grid[1], grid[2]],
        block: kernel.required_workgroup.unwrap_or([64, 1, 1]),
        dynamic_lds: 0,
        kernarg: &kernarg,
        memory: &arena,
        strict: asked("strict"),
        threads: number(7),
        order: None,
        limit: None,
        sample: None,
    };
    kernel.decode()?;
    let report = launch.run()?;
    println!("{report:#?}");
    let rate = report.total() as f64 / report.time.as_secs_f64() / launch.threads as f64 / 1e6;
    println!("{rate:.1} million wave-instructions a second and thread");
    // SAFETY: the launch has ended, and nothing else refers to these bytes.
    let out = unsafe { std::slice::from_raw_parts(arena.0[3].2.load(Ordering::Relaxed), out_len) };
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
