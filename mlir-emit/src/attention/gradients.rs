//! Gradients of attention by two kernels, without scores in memory: one kernel computes dq, the
//! other dk and dv. There are kernels for [AMD GPUs](Gradients) and for [CPUs](GradientsOnCpu).

use super::axes::{HEAD, KEY, QUERY};
use super::kernels::{Stored, converted, count, has_halves, is_float, is_for_cpus, operand, problem};
use super::scores::{Attention, level};
use crate::counts::exactly;
use crate::ir::MISSING;
use crate::kernel::{Attended, Attention as Kernel, Backward, Gradients, GradientsOnCpu, Registers, Side};
use crate::lowering::Lowering;
use crate::value::{Ordered, Value, extent};
use rotini_graph::{DataType, SdpaBackward};
use rotini_schedule::{Machine, attention};

/// Returns the gradients of q, k and v; `None` if no kernel has these types and columns, if there
/// is a mask, if its gradient is asked for, or if scores in memory are estimated to be faster.
pub(super) fn gradients<'c>(
    lowering: &Lowering<'_, 'c>,
    attention: &Attention<'c>,
    op: &SdpaBackward,
) -> Option<[Value<'c>; 3]> {
    if op.dbias.is_some() || attention.mask.is_some() {
        return None;
    }
    let stored = [op.dq, op.dk, op.dv].map(|id| Stored::of(lowering, id));
    if let Some(machine) = lowering.target().machine() {
        return on_gpu(lowering, attention, op, (machine, stored));
    }
    let registers = lowering.target().registers()?;
    on_cpu(lowering, attention, op, (registers, stored))
}

fn on_gpu<'c>(
    lowering: &Lowering<'_, 'c>,
    attention: &Attention<'c>,
    op: &SdpaBackward,
    (machine, stored): (&Machine, [Stored; 3]),
) -> Option<[Value<'c>; 3]> {
    if !has_halves(attention) {
        return None;
    }
    let (dtype, own) = (attention.q.dtype, [op.q, op.k, op.d_o]);
    let is_own = attention.multiplied(lowering, &own, dtype) == dtype && lowering.value(op.d_o).dtype == dtype;
    if !is_own {
        return None;
    }
    let d_o = lowering.settled(op.d_o);
    let [queries, keys] = sides(lowering, attention, &d_o, &stored)?;
    let [by_queries, by_keys] = schedules(machine, &queries)?;
    let kernels = |numbers: [usize; 2]| {
        [(&queries, by_queries), (&keys, by_keys)].map(|(problem, schedule)| Gradients {
            problem: Backward {
                numbers,
                ..problem.clone()
            },
            schedule,
        })
    };
    if !kernels([0; 2]).iter().all(Gradients::is_possible) {
        return None;
    }
    let kernels = kernels(numbers(lowering, attention, op, d_o));
    Some(made(lowering, kernels.each_ref().map(Kernel::Gradients), op, &stored))
}

/// Returns the schedules of the kernels for dq and for dk and dv; `None` if scores in memory are
/// estimated to be faster.
fn schedules(machine: &Machine, queries: &Backward) -> Option<[attention::Prefill; 2]> {
    let Backward { of, keys, .. } = queries;
    let batches = count(of.batch.saturating_mul(of.heads));
    let group = count(of.group);
    let of_q = batches.saturating_mul(group);
    // Each key is seen by the queries of all heads of its group.
    let turned = of.visible.transposed([of.queries, *keys]);
    let sides = [(of_q, of.queries, of.visible, 1), (batches, *keys, turned, group)];
    let (mut schedules, mut time) = (Vec::new(), 0_u64);
    for (batches, rows, visible, heads) in sides {
        let schedule = attention::prefill(machine, batches, count(rows));
        let seen = count(visible.seen_by(schedule.rows().cast_signed()));
        time = time.saturating_add(schedule.time(machine, [batches, count(rows)], [seen, heads]));
        schedules.push(schedule);
    }
    let rows = of_q.saturating_mul(count(of.queries));
    let is_slower = time > attention::time_of_gradients(rows.saturating_mul(count(of.visible.count())));
    let [by_queries, by_keys] = exactly(&schedules);
    Some([by_queries, by_keys]).filter(|_| !is_slower)
}

/// Returns the gradients computed by kernels for CPUs, which read and store f32.
fn on_cpu<'c>(
    lowering: &Lowering<'_, 'c>,
    attention: &Attention<'c>,
    op: &SdpaBackward,
    (registers, mut stored): (Registers, [Stored; 3]),
) -> Option<[Value<'c>; 3]> {
    let d_o = lowering.settled(op.d_o);
    if !is_for_cpus(attention) || !is_float(d_o.dtype) {
        return None;
    }
    let dtype = DataType::F32;
    for stored in &mut stored {
        stored.dtype = dtype;
    }
    let kernels = |attention: &Attention<'c>, d_o: &Ordered<'c>, numbers: [usize; 2]| {
        let sides = sides(lowering, attention, d_o, &stored);
        let kernels = sides.map(|sides| {
            sides.map(|problem| GradientsOnCpu {
                problem: Backward {
                    of: Attended { dtype, ..problem.of },
                    numbers,
                    ..problem
                },
                registers,
            })
        });
        kernels.filter(|kernels| kernels.iter().all(GradientsOnCpu::is_possible))
    };
    kernels(attention, &d_o, [0; 2])?;
    let numbers = numbers(lowering, attention, op, d_o.clone());
    let d_o = lowering.converted(d_o, dtype);
    let Some(kernels) = kernels(&converted(lowering, attention), &d_o, numbers) else {
        unreachable!("{MISSING}");
    };
    Some(made(
        lowering,
        kernels.each_ref().map(Kernel::GradientsOnCpu),
        op,
        &stored,
    ))
}

/// Returns the problems of both kernels, still without the values of `numbers` (two per query);
/// `None` if a tensor's layout fits no kernel.
fn sides<'c>(
    lowering: &Lowering<'_, 'c>,
    attention: &Attention<'c>,
    d_o: &Ordered<'c>,
    [of_queries, of_keys, of_values]: &[Stored; 3],
) -> Option<[Backward; 2]> {
    let (of, d_o) = (problem(lowering, attention, of_queries)?, operand(d_o)?);
    let (keys, values) = (of_keys.strides()?, of_values.strides()?);
    let queries = Backward {
        of,
        d_o,
        numbers: [0; 2],
        keys: extent(&attention.dims, KEY),
        side: Side::Queries,
    };
    let keys = Backward {
        of: Attended {
            out: (of_keys.dtype, keys),
            ..queries.of.clone()
        },
        side: Side::Keys((of_values.dtype, values)),
        ..queries.clone()
    };
    Some([queries, keys])
}

/// Returns the ids of the two tensors with one number per query: the softmax statistics, and the
/// row sums of dO · O.
fn numbers<'c>(
    lowering: &Lowering<'_, 'c>,
    attention: &Attention<'c>,
    op: &SdpaBackward,
    d_o: Ordered<'c>,
) -> [usize; 2] {
    let statistics = lowering
        .value(op.stats)
        .clone()
        .with_dims(&lowering.emitter(), &attention.rows());
    let order = [0, HEAD, QUERY, KEY];
    let level = level(lowering, (&Value::of(d_o), op.o), &order, DataType::F32);
    let mut numbers = [0; 2];
    for (value, number) in [statistics, level].into_iter().zip(&mut numbers) {
        let rows = lowering.carry(value.materialise(&lowering.emitter()), DataType::F32);
        *number = lowering.reordered(&rows, &order).ssa.id();
    }
    numbers
}

/// Appends both kernels and returns the gradients.
fn made<'c>(
    lowering: &Lowering<'_, 'c>,
    [queries, keys]: [Kernel<'_>; 2],
    op: &SdpaBackward,
    [of_queries, of_keys, of_values]: &[Stored; 3],
) -> [Value<'c>; 3] {
    let dq = lowering.attention(queries, &[&of_queries.shape()]);
    let both = lowering.attention(keys, &[&of_keys.shape(), &of_values.shape()]);
    let (&[dq], &[dk, dv]) = (dq.as_slice(), both.as_slice()) else {
        unreachable!("{MISSING}");
    };
    let gradient = |stored: &Stored, ssa, id| {
        let ordered = stored.ordered(ssa);
        Value::of(if lowering.is_read(id) {
            lowering.carry(ordered, stored.carried)
        } else {
            ordered
        })
    };
    [
        gradient(of_queries, dq, op.dq),
        gradient(of_keys, dk, op.dk),
        gradient(of_values, dv, op.dv),
    ]
}
