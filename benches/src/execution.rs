//! Measures the plugin's overhead per execution, by a sum of 16 elements on local-sync through the
//! C ABI.
//!
//! The work is so small that all of the time is overhead: mapping uids to arguments, checks, taking
//! a lane of the pool, IREE's VM and HAL. The peer is a bare `iree_vm_invoke` of the same vmfb on
//! the same buffers. The vmfb comes from the cache directory, which the plugin has just filled.

use crate::report::{Bar, Row};
use crate::sampling::{interleave, timed};
use crate::subject::{Buffers, Subject};
use anyhow::{Context as _, Result, ensure};
use rotini_cache::Origin;
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode};
use rotini_host::DeviceBuffer;
use rotini_iree::runtime::{ElementType, HalDevice, Instance, Invocation, Module, Parameter, Session, TensorType};
use rotini_plugin::compile::{compiled, key};
use rotini_plugin::config::Config;
use rotini_plugin::prepared::decode;
use rotini_plugin::runtime::Runtime;
use std::time::Duration;

pub(crate) fn run() -> Result<Vec<Row>> {
    let subject = Subject::new()?;
    let graph = sum();
    let bytes = rotini_wire::encode(&graph);
    let context = subject.context(&bytes)?;
    let mut memory = Buffers::new(&graph, context.workspace()?, |_, position| position as f32)?;
    let (pack, workspace) = memory.variant_pack();
    let mut bare = bare(&bytes, &pack)?;
    let samples = interleave(
        500,
        timed(100, || {
            // SAFETY: every tensor of the graph has a buffer of its span, and the workspace has the
            // context's size.
            Ok(unsafe { context.execute(workspace, &pack) }?)
        }),
        timed(100, || Ok(bare.invoke()?)),
    )?;
    let sums = memory.values("y")?;
    ensure!(
        sums.iter()
            .enumerate()
            .all(|(position, &sum)| sum == 2.0 * position as f32),
        "wrong sums: {sums:?}"
    );
    let bar = Bar::Over(Duration::from_micros(3));
    Ok(vec![Row::new(
        "execution of a 16-element sum",
        "bare iree_vm_invoke",
        &samples,
        Some(bar),
    )])
}

fn sum() -> Graph {
    let mut b = GraphBuilder::new("sum");
    let [a, c, y] = ["a", "c", "y"].map(|name| b.buffer(name, DataType::F32, &[16]));
    b.pointwise(DataType::F32, PointwiseMode::Add, &[a, c], y);
    b.build()
}

/// Returns a bare invocation of the code that the plugin compiled, on the same buffers.
fn bare(bytes: &[u8], pack: &[DeviceBuffer]) -> Result<Invocation> {
    let runtime = Runtime::new(Config::from_env())?;
    let device = runtime.host()?;
    let (plan, compiled_for) = (decode(bytes)?, device.compiled_for());
    let key = key(&runtime, &plan.graph, compiled_for)?;
    let (entry, origin) = compiled(&runtime, &key, &plan.source(bytes, compiled_for))?;
    ensure!(
        origin == Origin::Disk,
        "this is not the plugin's vmfb: it is from {origin:?}"
    );

    let instance = Instance::new()?;
    // SAFETY: the compiler produced the code for this machine.
    let executable = unsafe { Module::load(&instance, entry.payload.as_ref().into()) }?;
    let mut parameters = Vec::new();
    for argument in &rotini_emit::signature(&plan.graph)?.arguments {
        parameters.push(Parameter::Tensor(TensorType::new(ElementType::F32, &argument.shape)?));
    }
    parameters.extend([Parameter::Workspace, Parameter::WaitFence, Parameter::SignalFence]);
    let session = Session::new(&HalDevice::local_sync(&instance)?, &executable)?;
    let mut invocation = Invocation::new(session, rotini_emit::ENTRY_POINT, parameters)?;
    ensure!(invocation.workspace_bytes() == 0, "a sum needs no workspace");
    for (index, uid) in plan.bindings.uids.iter().enumerate() {
        let buffer = pack
            .iter()
            .find(|buffer| buffer.uid == *uid)
            .context("a tensor without a buffer")?;
        // SAFETY: the buffers have the spans of their tensors, and the caller keeps them as long as
        // the invocation.
        unsafe { invocation.bind(index, buffer.ptr) }?;
    }
    Ok(invocation)
}
