//! Errors of records.

/// The reason why a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A word of the text form that is no instruction
    #[error("{0} is no instruction of a record")]
    Step(String),
    /// The path leads outside of the instructions, or is empty
    #[error("the path of the wave leads outside of the kernel")]
    Path,
    /// Work of workgroups that the launch does not have, out of order, or of an impossible amount
    #[error("the record's work of workgroups is not that of a launch")]
    Work,
    /// The record has too many instructions
    #[error("the record has too many instructions")]
    Long,
    /// A size that is 0
    #[error("the record's {0} is 0")]
    Zero(&'static str),
}
