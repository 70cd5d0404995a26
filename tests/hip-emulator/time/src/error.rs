//! Owns what is wrong with a record.

/// Why a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A word that is no instruction
    #[error("{0} is no instruction of a record")]
    Step(String),
    /// A path that leads outside of the instructions, or has no end
    #[error("the path of the wave leads outside of the kernel")]
    Path,
    /// Work of workgroups that the launch does not have, or that no workgroup can have
    #[error("the record's work of workgroups is not that of a launch")]
    Work,
    /// Too many instructions
    #[error("the record has too many instructions")]
    Long,
    /// A size that no launch has
    #[error("the record's {0} is 0")]
    Zero(&'static str),
}
