//! A graph's kernels as text: lines for a terminal, and phrases for the page.

use super::document::{Counted, Document, Kernel, Launch, Product};
use crate::output::{FAINT, Output};
use crate::report::{self, bytes, number, plain};
use anyhow::Result;
use comfy_table::Cell;
use rotini_inspect::{Configuration, Lowering};
use rotini_schedule::gemm::Problem;

pub(super) fn tell(document: &Document, output: &Output) -> Result<()> {
    output.line(&plain(&format!("{}: {}", document.graph, about(document))))?;
    let fact = |item: &str, text: &str| output.line(&format!("{item:>14} {FAINT}│{FAINT:#} {}", plain(text)));
    fact("at least", &least(document))?;
    if let Some(whole) = whole(document) {
        fact("all launches", &whole)?;
    }
    if let Some(device) = &document.constants_of {
        fact("constants", &format!("measured on {device}"))?;
    }
    for product in &document.products {
        fact("product", &schedules(product))?;
    }
    for kernel in &document.kernels {
        output.line("")?;
        output.line(&plain(&kernel.name))?;
        for (item, text) in facts(kernel) {
            fact(item, &text)?;
        }
        for launch in launches(document, kernel) {
            fact("launch", &launch)?;
        }
        output.line(&instructions(kernel).to_string())?;
    }
    if document.launches.is_none() {
        output.note("Nothing was executed: --emulate adds counts and predicted times.")?;
    }
    Ok(())
}

/// Describes the graph.
pub(super) fn about(document: &Document) -> String {
    format!(
        "{} ({}) for {}, {}",
        document.summary,
        document.dtype,
        document.target,
        report::count(document.kernels.len() as u64, "kernel", "kernels")
    )
}

/// Describes the lower bound of the graph's cost.
pub(super) fn least(document: &Document) -> String {
    let least = &document.least;
    let operations = least
        .operations
        .map_or_else(String::new, |operations| format!(" and {:.3} GFLOP", operations / 1e9));
    format!(
        "{}{operations}: {:.2} µs at the data sheet's rates",
        bytes(least.bytes),
        least.least_us
    )
}

/// Describes a product, its schedule and the next best schedules.
pub(super) fn schedules(product: &Product) -> String {
    let Problem {
        count,
        rows,
        columns,
        depth,
        ..
    } = product.problem;
    let told = product.predicted_us.iter();
    let told: Vec<String> = told
        .map(|(schedule, time)| format!("{schedule} predicted {time:.1} µs"))
        .collect();
    format!(
        "{count} × {rows} × {columns}, sums over {}, is cut as {}; by the closed form: {}",
        bytes(depth),
        product.schedule,
        told.join(", ")
    )
}

/// Describes all launches together, if anything was executed.
pub(super) fn whole(document: &Document) -> Option<String> {
    let (time, share) = (document.time()?, document.share()?);
    let moved = document.bytes().map_or_else(String::new, |moved| {
        let ratio = moved as f64 / document.least.bytes.max(1) as f64;
        format!("; {} loaded and stored by lanes, {ratio:.1} × the least", bytes(moved))
    });
    Some(format!(
        "{time}, {:.0} % of the roofline (predicted){moved}",
        100.0 * share
    ))
}

/// Returns the properties of a kernel other than its instructions.
pub(super) fn facts(kernel: &Kernel) -> Vec<(&'static str, String)> {
    let needs = &kernel.needs;
    let spilled = match (needs.vector_spills, needs.scalar_spills) {
        (0, 0) => "nothing spilled".to_owned(),
        (vector, scalar) => format!("SPILLED: {vector} vector, {scalar} scalar"),
    };
    let private = match needs.private_bytes {
        0 => "no private memory".to_owned(),
        private => format!("{private} bytes of private memory a lane"),
    };
    let occupancy = kernel.occupancy;
    let mut facts = vec![("configured", configured(kernel))];
    if let Some(configuration) = &kernel.configuration {
        facts.extend(
            configuration
                .lowerings
                .iter()
                .map(|lowering| ("tiles", tiles(lowering))),
        );
    }
    facts.extend([
        (
            "registers",
            format!(
                "{} vector ({} of them for accumulation), {} scalar; {spilled}",
                needs.vector_registers, needs.accumulation_registers, needs.scalar_registers
            ),
        ),
        (
            "memory",
            format!("{} of LDS a workgroup, {private}", bytes(needs.lds_bytes.into())),
        ),
        (
            "occupancy",
            format!(
                "{} waves a SIMD ({} a compute unit)",
                occupancy.waves,
                report::count(occupancy.workgroups.into(), "workgroup", "workgroups")
            ),
        ),
        ("matrix", matrix(kernel)),
    ]);
    if let Some(hottest) = &kernel.hottest_loop {
        facts.push(("hottest loop", busy(hottest)));
    }
    facts
}

fn configured(kernel: &Kernel) -> String {
    let [x, y, z] = kernel.needs.workgroup;
    let lanes = format!(
        "workgroups of {x} × {y} × {z} lanes ({})",
        report::count(kernel.needs.waves().into(), "wave", "waves")
    );
    match &kernel.configuration {
        None => lanes,
        Some(Configuration {
            pipeline,
            subgroup_size,
            options,
            ..
        }) => {
            let subgroup = subgroup_size.map_or_else(String::new, |size| format!(", subgroups of {size}"));
            let options = if options.is_empty() {
                String::new()
            } else {
                format!("; {options}")
            };
            format!("{pipeline}, {lanes}{subgroup}{options}")
        }
    }
}

fn tiles(lowering: &Lowering) -> String {
    if lowering.lists.is_empty() && lowering.matrix.is_none() {
        return lowering.text.clone();
    }
    let matrix = lowering.matrix.iter().cloned();
    let lists = lowering.lists.iter().map(|(name, values)| format!("{name} {values:?}"));
    matrix.chain(lists).collect::<Vec<_>>().join(", ")
}

fn matrix(kernel: &Kernel) -> String {
    let share = |counted: &Counted| format!("{:.0} %", 100.0 * counted.matrix_share);
    let in_loop = kernel.hottest_loop.as_ref().map_or_else(String::new, |hottest| {
        format!(", {} in the hottest loop", share(hottest))
    });
    if kernel.code.matrix_operations == 0 {
        "no matrix instructions".to_owned()
    } else {
        format!("{} of the instructions{in_loop}", share(&kernel.code))
    }
}

/// Describes which units one pass occupies, and for how many clocks.
fn busy(counted: &Counted) -> String {
    let clocks: Vec<_> = counted
        .clocks
        .iter()
        .map(|(unit, clocks)| format!("{unit} {clocks}"))
        .collect();
    let most = counted
        .busiest
        .as_ref()
        .map_or_else(String::new, |unit| format!(": {unit} first"));
    format!("clocks of a SIMD at full rate: {}{most}", clocks.join(", "))
}

/// Describes the launches of a kernel.
pub(super) fn launches(document: &Document, kernel: &Kernel) -> Vec<String> {
    let launches = document.launches.iter().flatten().enumerate();
    let of_kernel = launches.filter(|(_, launch)| launch.kernel == kernel.name);
    of_kernel.map(|(index, one)| launch(index, one)).collect()
}

fn launch(index: usize, launch: &Launch) -> String {
    let [from, to] = launch.interval.map(|end| end.microseconds());
    let counts = launch.counts.as_ref().map_or_else(String::new, |counts| {
        let mut classes: Vec<_> = counts.instructions.iter().filter(|&(_, &count)| count > 0).collect();
        classes.sort_by(|a, b| b.1.cmp(a.1));
        let classes: Vec<_> = classes
            .into_iter()
            .map(|(class, count)| format!("{class} {count}"))
            .collect();
        let read = bytes(counts.bytes_read);
        format!(
            "; executed {}; {read} loaded, {} stored; {} turns of LDS by conflicts",
            classes.join(", "),
            bytes(counts.bytes_written),
            counts.lds_bank_conflicts
        )
    });
    let warm = launch.warm.map_or_else(String::new, |warm| format!(", {warm} warm"));
    let extrapolated = if launch.extrapolated.is_empty() {
        String::new()
    } else {
        format!(", extrapolated ({})", launch.extrapolated.join(", "))
    };
    format!(
        "{index}: {}, {} ({from:.1} to {to:.1}){warm}{extrapolated}; bound by {} ({:.0} % of the predicted time), matrix units busy {:.0} % of it{counts}",
        report::count(launch.workgroups, "workgroup", "workgroups"),
        launch.time,
        launch.bound,
        100.0 * launch.predicted_bound_share,
        100.0 * launch.predicted_matrix_share
    )
}

/// Returns the rows of the table of instructions: class, count in the code, count in the hottest
/// loop.
pub(super) fn rows(kernel: &Kernel) -> Vec<(String, u64, Option<u64>)> {
    let hottest = kernel.hottest_loop.as_ref();
    let in_loop = |class: &String| {
        let hottest = hottest?;
        Some(hottest.instructions.get(class).copied().unwrap_or(0))
    };
    let all = kernel.code.instructions.iter();
    let mut rows: Vec<_> = all
        .map(|(class, &count)| (class.clone(), count, in_loop(class)))
        .collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.push((
        "all".to_owned(),
        kernel.code.total,
        hottest.map(|hottest| hottest.total),
    ));
    rows
}

fn instructions(kernel: &Kernel) -> comfy_table::Table {
    let mut table = report::table(&["instructions", "code", "hottest loop"]);
    for (class, all, hottest) in rows(kernel) {
        table.add_row([
            Cell::new(class),
            number(Some(all.to_string())),
            number(hottest.map(|count| count.to_string())),
        ]);
    }
    table
}
