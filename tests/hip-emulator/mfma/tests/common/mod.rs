//! Code that the tests share. It is independent of the crate under test: shapes are parsed from the
//! mnemonics, layouts follow AMD's formulas, and the generator is that of `oracle/vectors.py`.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "a module of several tests, of which each uses a part"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests use it")]

pub mod generate;
pub mod layout;

use rotini_mfma::Register;

/// An instruction as its name describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub blocks: usize,
    pub a: Kind,
    pub b: Kind,
    pub d: Kind,
    pub sparse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    F64,
    F32,
    Xf32,
    F16,
    Bf16,
    Fp8,
    Bf8,
    I8,
    I32,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "f64" => Kind::F64,
            "f32" => Kind::F32,
            "xf32" => Kind::Xf32,
            "f16" => Kind::F16,
            "bf16" => Kind::Bf16,
            "fp8" => Kind::Fp8,
            "bf8" => Kind::Bf8,
            "i8" => Kind::I8,
            "i32" => Kind::I32,
            _ => return None,
        })
    }

    pub fn bits(self) -> usize {
        match self {
            Kind::F64 => 64,
            Kind::F32 | Kind::Xf32 | Kind::I32 => 32,
            Kind::F16 | Kind::Bf16 => 16,
            Kind::Fp8 | Kind::Bf8 | Kind::I8 => 8,
        }
    }
}

impl Shape {
    pub fn parse(name: &'static str) -> Self {
        let parts: Vec<&str> = name.split('_').collect();
        let [m, n, k] = parts[3]
            .split('x')
            .map(|side| side.parse().unwrap())
            .collect::<Vec<_>>()[..]
        else {
            panic!("{name}")
        };
        let blocks = parts[4..]
            .iter()
            .find_map(|part| part.strip_suffix('b')?.parse().ok())
            .unwrap_or(1);
        let kinds: Vec<Kind> = parts[4..].iter().filter_map(|part| Kind::parse(part)).collect();
        Shape {
            name,
            m,
            n,
            k,
            blocks,
            a: kinds[0],
            b: *kinds.last().unwrap(),
            d: Kind::parse(parts[2]).unwrap(),
            sparse: parts[1] == "smfmac",
        }
    }

    /// Returns every instruction that LLVM 22 assembles for gfx942, with the numbers of registers
    /// of A, B, C and D.
    pub fn all() -> Vec<(Self, [usize; 4])> {
        include_str!("../../oracle/mnemonics.txt")
            .lines()
            .map(|line| {
                let mut parts = line.split(' ');
                let name = parts.next().unwrap();
                let counts: Vec<usize> = parts.map(|count| count.parse().unwrap()).collect();
                (Shape::parse(name), counts[..].try_into().unwrap())
            })
            .collect()
    }

    /// Returns the number of stored elements of A along k.
    pub fn stored(&self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }
}

/// Returns zeroed registers.
pub fn registers(count: usize) -> Vec<Register> {
    vec![[0; 64]; count]
}
