//! Convolutions of MIOpen's performance database for MI300X in f16, with the best time among its
//! solvers.
//!
//! `miopen.csv` has 400 of the database's entries, drawn so that every direction, size of filter,
//! stride, grouping and order of magnitude of the time has as many as there are. Columns:
//! `direction` (F: forward, B: gradient of the input, W: gradient of the filters), the extents by
//! their usual letters, `stride` and `padding` as HxW, `groups`, the fastest `solver`, and its time
//! in `microseconds`. The database (ROCm/MIOpen, `src/kernels/gfx942130.db`) was filled by AMD on
//! an MI300X; the times are NCHW's.

use super::SuiteOptions;
use crate::blocks::{Convolution, Direction, Epilogue, Layout};
use crate::{Published, Workload, WorkloadError};
use rotini_graph::DataType;

const TABLE: &str = include_str!("miopen.csv");

/// Returns the graphs of the suite.
pub(super) fn miopen(options: &SuiteOptions) -> Result<Vec<Workload>, WorkloadError> {
    let layout = options.layout.unwrap_or(Layout::First);
    let dtype = options.dtype.unwrap_or(DataType::F16);
    let mut workloads = Vec::new();
    for line in TABLE.lines().skip(1) {
        let row = row(line, layout, dtype)
            .ok_or_else(|| WorkloadError::Suite(format!("the table of MIOpen's times has a bad row: {line}")))?;
        let (direction, mut conv, published) = row;
        if options.direction.is_some_and(|only| only != direction) {
            continue;
        }
        let is_theirs = options.batch.is_none_or(|n| n == conv.n) && layout == Layout::First && dtype == DataType::F16;
        conv.n = options.batch.unwrap_or(conv.n);
        let name = name(&conv, direction);
        let graph = conv
            .graph(&name, direction, Epilogue::None)
            .ok_or_else(|| WorkloadError::Suite(format!("the filter does not fit: {line}")))?;
        workloads.push(Workload {
            name,
            origin: format!("suite miopen, {line}"),
            graph: rotini_wire::encode(&graph),
            // The published time is for the table's batch, NCHW and f16 only.
            published: if is_theirs { vec![published] } else { Vec::new() },
        });
    }
    Ok(workloads)
}

fn name(conv: &Convolution, direction: Direction) -> String {
    let direction = match direction {
        Direction::Forward => "fwd",
        Direction::Dgrad => "dgrad",
        Direction::Wgrad => "wgrad",
    };
    let of = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    format!(
        "{direction}_n{}_c{}_{}_k{}_{}_s{}_p{}_g{}",
        conv.n,
        conv.c,
        of(&conv.input),
        conv.k,
        of(&conv.filter),
        of(&conv.stride),
        of(&conv.padding),
        conv.groups
    )
}

fn row(line: &str, layout: Layout, dtype: DataType) -> Option<(Direction, Convolution, Published)> {
    let cells: Vec<&str> = line.split(',').collect();
    let &[
        direction,
        n,
        c,
        h,
        w,
        k,
        r,
        s,
        stride,
        padding,
        groups,
        solver,
        microseconds,
    ] = cells.as_slice()
    else {
        return None;
    };
    let number = |text: &str| text.parse::<i64>().ok();
    let pair = |text: &str| text.split('x').map(number).collect::<Option<Vec<_>>>();
    let direction = match direction {
        "F" => Direction::Forward,
        "B" => Direction::Dgrad,
        "W" => Direction::Wgrad,
        _ => return None,
    };
    let conv = Convolution {
        n: number(n)?,
        c: number(c)?,
        k: number(k)?,
        input: vec![number(h)?, number(w)?],
        filter: vec![number(r)?, number(s)?],
        padding: pair(padding)?,
        stride: pair(stride)?,
        dilation: vec![1; 2],
        groups: number(groups)?,
        layout,
        dtype,
    };
    let published = Published {
        by: format!("MIOpen's database, MI300X: {solver}"),
        microseconds: microseconds.parse().ok()?,
    };
    Some((direction, conv, published))
}
