//! The record of a launch: the emulator's counts on a sample of workgroups, and the path of one
//! wave.

use serde::{Deserialize, Serialize};

use crate::{
    RecordError,
    path::{Path, Run},
    step::{self, Instruction},
};

/// The counts of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Name of the kernel
    pub kernel: String,
    /// Number of workgroups of the launch
    pub workgroups: u64,
    /// Number of waves per workgroup
    pub waves: u32,
    /// Vector registers per lane, including accumulation registers
    pub registers: u32,
    /// Scalar registers per wave
    pub scalars: u32,
    /// LDS bytes per workgroup
    pub lds: u32,
    /// Private memory per lane, in bytes
    pub scratch: u32,
    /// Number of workgroups that were executed
    pub sampled: u64,
    /// Bytes that all workgroups touch, estimated from the sample's lines of 128 bytes: at most the
    /// sizes of the allocations that contain them
    pub footprint: u64,
    /// The kernel's instructions
    pub instructions: Vec<Instruction>,
    /// The path of one wave through the instructions
    pub path: Path,
    /// Work of some workgroups by number, relative to the workgroup whose path was recorded; empty
    /// if all have the same work
    pub work: Vec<(u64, f32)>,
}

/// The serialized form of a record.
#[derive(Serialize, Deserialize)]
struct Written {
    kernel: String,
    workgroups: u64,
    waves: u32,
    registers: u32,
    scalars: u32,
    lds: u32,
    scratch: u32,
    sampled: u64,
    footprint: u64,
    steps: String,
    path: Vec<(u32, u32, u32, u32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    work: Vec<(u64, f32)>,
}

impl Record {
    /// Checks the properties that the model relies on.
    ///
    /// # Errors
    ///
    /// Returns a [`RecordError`] for sizes of 0, work of workgroups that the launch does not have,
    /// and a path that leaves the kernel.
    pub fn check(&self) -> Result<(), RecordError> {
        for (name, value) in [
            ("workgroups", self.workgroups),
            ("waves", self.waves.into()),
            ("sample", self.sampled),
        ] {
            if value == 0 {
                return Err(RecordError::Zero(name));
            }
        }
        let is_work = |&(group, work): &(u64, f32)| group < self.workgroups && work.is_finite() && work >= 0.0;
        if !self.work.iter().all(is_work) || !self.work.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(RecordError::Work);
        }
        self.path.check(self.instructions.len())
    }
}

impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            kernel: self.kernel.clone(),
            workgroups: self.workgroups,
            waves: self.waves,
            registers: self.registers,
            scalars: self.scalars,
            lds: self.lds,
            scratch: self.scratch,
            sampled: self.sampled,
            footprint: self.footprint,
            steps: step::write(&self.instructions),
            path: self
                .path
                .0
                .iter()
                .map(|run| (run.first, run.end, run.back, run.times))
                .collect(),
            work: self.work.clone(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let run = |(first, end, back, times)| Run {
            first,
            end,
            back,
            times,
        };
        let record = Self {
            kernel: written.kernel,
            workgroups: written.workgroups,
            waves: written.waves,
            registers: written.registers,
            scalars: written.scalars,
            lds: written.lds,
            scratch: written.scratch,
            sampled: written.sampled,
            footprint: written.footprint,
            instructions: step::read(&written.steps).map_err(serde::de::Error::custom)?,
            path: Path(written.path.into_iter().map(run).collect()),
            work: written.work,
        };
        record.check().map_err(serde::de::Error::custom)?;
        Ok(record)
    }
}
