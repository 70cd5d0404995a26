//! What executes a network: a session of ONNX Runtime's on the caller's buffers.

use crate::network::{Attribute, Constant, Element, Network, OPSET, Port, Step};
use ort::AsPointer as _;
use ort::editor::{Graph, Model, Node, ONNX_DOMAIN, Opset};
use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::memory::Allocator;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::sys::{self, ONNXTensorElementDataType as Number};
use ort::value::{Outlet, SymbolicDimensions, Tensor, TensorElementType, ValueType};
use rotini_engine_kit::{Buffers, Execution};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where ONNX Runtime is and what it may use.
pub(crate) struct Settings {
    environment: &'static Environment,
    threads: usize,
    spin: bool,
}

impl Settings {
    /// Loads ONNX Runtime, once in a process.
    ///
    /// # Errors
    ///
    /// Without its library; for settings that are none.
    pub(crate) fn of_environment() -> Result<Self, String> {
        const LIBRARY: &str = "ROTINI_ONNXRUNTIME";
        const THREADS: &str = "ONNXRUNTIME_ENGINE_THREADS";
        const SPIN: &str = "ONNXRUNTIME_ENGINE_SPIN";
        static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();
        let environment = ENVIRONMENT.get_or_init(|| {
            let path =
                std::env::var_os(LIBRARY).ok_or_else(|| format!("{LIBRARY} does not say where ONNX Runtime is"))?;
            let failed = |error: String| format!("{LIBRARY}={}: {error}", path.display());
            let builder = ort::init_from(&path).map_err(|error| failed(error.to_string()))?;
            let builder = builder.with_name("rotini").with_telemetry(false);
            builder.build().map_err(|error| failed(error.to_string()))
        });
        let threads = match std::env::var(THREADS) {
            Ok(text) => text.parse().ok().filter(|&threads| threads > 0),
            Err(_) => std::thread::available_parallelism().ok().map(usize::from),
        };
        let spin = match std::env::var(SPIN).as_deref() {
            Ok("1") => true,
            Ok("0") | Err(_) => false,
            Ok(other) => return Err(format!("{SPIN}={other} is neither 0 nor 1")),
        };
        Ok(Settings {
            environment: environment.as_ref().map_err(String::clone)?,
            threads: threads.ok_or_else(|| format!("{THREADS} is no number of threads"))?,
            spin,
        })
    }
}

/// A network, ready to run.
pub(crate) struct Session {
    session: ort::session::Session,
    inputs: Ports,
    outputs: Ports,
    /// The values over the buffers of the last execution. Taken while they are used.
    bound: Mutex<Option<Bound>>,
}

/// Tensors of the caller's, with their names as C reads them.
struct Ports {
    ports: Vec<Port>,
    names: Vec<CString>,
}

impl Ports {
    fn new(ports: Vec<Port>) -> Result<Self, String> {
        let names = ports.iter().map(|port| CString::new(port.name.as_str()));
        Ok(Ports {
            names: names.collect::<Result<_, _>>().map_err(|error| error.to_string())?,
            ports,
        })
    }

    fn names(&self) -> Vec<*const c_char> {
        self.names.iter().map(|name| name.as_ptr()).collect()
    }

    fn pointers(&self, buffers: Buffers<'_>) -> Result<Vec<*mut c_void>, String> {
        self.ports.iter().map(|port| buffers.pointer(&port.tensor)).collect()
    }
}

/// Values over buffers.
struct Bound {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

impl Session {
    /// Builds a network.
    ///
    /// # Errors
    ///
    /// ONNX Runtime's.
    pub(crate) fn new(network: Network, settings: &Settings) -> Result<Self, String> {
        let session = build(&network, settings).map_err(|error| error.to_string())?;
        Ok(Session {
            session,
            inputs: Ports::new(network.inputs)?,
            outputs: Ports::new(network.outputs)?,
            bound: Mutex::default(),
        })
    }

    /// The values over buffers: those of last time, if the buffers are the same.
    ///
    /// # Safety
    ///
    /// As [`Execution::execute`], for as long as the values are used.
    unsafe fn bind(&self, buffers: Buffers<'_>) -> Result<Bound, String> {
        let (inputs, outputs) = (self.inputs.pointers(buffers)?, self.outputs.pointers(buffers)?);
        let last = self.bound.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last
            && last.inputs.iter().map(|value| value.buffer).eq(inputs.iter().copied())
            && last
                .outputs
                .iter()
                .map(|value| value.buffer)
                .eq(outputs.iter().copied())
        {
            return Ok(last);
        }
        self.expect_apart(&inputs, &outputs)?;
        let values = |ports: &Ports, pointers: Vec<*mut c_void>| {
            let both = ports.ports.iter().zip(pointers);
            // SAFETY: by this function's contract.
            let values = both.map(|(port, pointer)| unsafe { Value::new(port, pointer) });
            values.collect::<ort::Result<_>>().map_err(|error| error.to_string())
        };
        Ok(Bound {
            inputs: values(&self.inputs, inputs)?,
            outputs: values(&self.outputs, outputs)?,
        })
    }

    /// Refuses a result over an input: ONNX Runtime may write it before it has read all.
    fn expect_apart(&self, inputs: &[*mut c_void], outputs: &[*mut c_void]) -> Result<(), String> {
        let range =
            |port: &Port, start: &*mut c_void| start.addr()..start.addr().saturating_add(port.bytes().unwrap_or(0));
        for (input, start) in self.inputs.ports.iter().zip(inputs) {
            let read = range(input, start);
            for (output, start) in self.outputs.ports.iter().zip(outputs) {
                let written = range(output, start);
                if read.start < written.end && written.start < read.end {
                    return Err(format!("{} lies over {}", output.tensor, input.tensor));
                }
            }
        }
        Ok(())
    }
}

impl Execution for Session {
    unsafe fn execute(&self, buffers: Buffers<'_>, _: *mut c_void, _: *mut c_void) -> Result<(), String> {
        // SAFETY: by this function's contract; the values are kept, but not used, beyond it.
        let bound = unsafe { self.bind(buffers) }?;
        let inputs: Vec<*const sys::OrtValue> = bound.inputs.iter().map(|value| value.raw.cast_const()).collect();
        let mut outputs: Vec<*mut sys::OrtValue> = bound.outputs.iter().map(|value| value.raw).collect();
        // SAFETY: the session is alive, and runs may be concurrent. All arrays have as many entries as is said, and the values are over
        // memory of their size. There are values for all outputs, so none are made.
        let done = unsafe {
            let status = (ort::api().Run)(
                self.session.ptr().cast_mut(),
                std::ptr::null(),
                self.inputs.names().as_ptr(),
                inputs.as_ptr(),
                inputs.len(),
                self.outputs.names().as_ptr(),
                outputs.len(),
                outputs.as_mut_ptr(),
            );
            ort::Error::result_from_status(status)
        };
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = Some(bound);
        done.map_err(|error| error.to_string())
    }
}

/// A tensor of ONNX Runtime's over a buffer.
struct Value {
    raw: *mut sys::OrtValue,
    buffer: *mut c_void,
}

// SAFETY: a value belongs to nobody but its owner, and ONNX Runtime does not care which thread that is.
unsafe impl Send for Value {}

impl Value {
    /// # Safety
    ///
    /// The buffer has the tensor's bytes whenever the value is used.
    unsafe fn new(port: &Port, buffer: *mut c_void) -> ort::Result<Self> {
        let number = match port.element {
            Element::F32 => Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
            Element::F16 => Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
            Element::Bf16 => Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        };
        let (mut memory, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the places are valid for writes, the shape has as many entries as is said; the buffer by this function's contract. The
        // description of the memory is copied into the value.
        unsafe {
            let api = ort::api();
            let status = (api.CreateCpuMemoryInfo)(
                sys::OrtAllocatorType::OrtDeviceAllocator,
                sys::OrtMemType::OrtMemTypeDefault,
                &mut memory,
            );
            ort::Error::result_from_status(status)?;
            let status = (api.CreateTensorWithDataAsOrtValue)(
                memory,
                buffer,
                port.bytes().unwrap_or(0),
                port.shape.as_ptr(),
                port.shape.len(),
                number,
                &mut raw,
            );
            (api.ReleaseMemoryInfo)(memory);
            ort::Error::result_from_status(status)?;
        }
        Ok(Value { raw, buffer })
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and given back here alone.
        unsafe { (ort::api().ReleaseValue)(self.raw) };
    }
}

fn build(network: &Network, settings: &Settings) -> ort::Result<ort::session::Session> {
    let mut graph = Graph::new()?;
    graph.set_inputs(network.inputs.iter().map(outlet))?;
    graph.set_outputs(network.outputs.iter().map(outlet))?;
    for (name, dims, constant) in &network.constants {
        match constant {
            Constant::Floats(values) => {
                let mut tensor = Tensor::<f32>::new(&Allocator::default(), dims.clone())?;
                tensor.extract_tensor_mut().1.copy_from_slice(values);
                graph.add_initializer(name, tensor, false)?;
            }
            Constant::Integers(values) => {
                let mut tensor = Tensor::<i64>::new(&Allocator::default(), dims.clone())?;
                tensor.extract_tensor_mut().1.copy_from_slice(values);
                graph.add_initializer(name, tensor, false)?;
            }
        }
    }
    for (position, step) in network.steps.iter().enumerate() {
        graph.add_node(node(position, step)?)?;
    }
    let mut model = Model::new([Opset::new(ONNX_DOMAIN, OPSET)?])?;
    model.set_graph(graph)?;
    let plain = ort::Error::<()>::from;
    let options = SessionBuilder::new(settings.environment)?
        .with_intra_threads(settings.threads)
        .map_err(plain)?
        .with_inter_threads(1)
        .map_err(plain)?
        .with_intra_op_spinning(settings.spin)
        .map_err(plain)?
        .with_log_level(LogLevel::Error)
        .map_err(plain)?
        .with_optimization_level(GraphOptimizationLevel::All)
        .map_err(plain)?;
    model.into_session(&options)
}

fn node(position: usize, step: &Step) -> ort::Result<Node> {
    let attributes = step.attributes.iter().map(|(name, value)| match value {
        Attribute::Integer(value) => ort::operator::Attribute::new(name, *value),
        Attribute::Integers(values) => ort::operator::Attribute::new(name, values.clone()),
        Attribute::Float(value) => ort::operator::Attribute::new(name, *value),
        Attribute::Text(value) => ort::operator::Attribute::new(name, (*value).to_owned()),
    });
    let attributes: Vec<_> = attributes.collect::<ort::Result<_>>()?;
    let name = format!("{}_{position}", step.kind);
    Node::new(step.kind, ONNX_DOMAIN, name, &step.inputs, &step.outputs, attributes)
}

fn outlet(port: &Port) -> Outlet {
    let ty = match port.element {
        Element::F32 => TensorElementType::Float32,
        Element::F16 => TensorElementType::Float16,
        Element::Bf16 => TensorElementType::Bfloat16,
    };
    Outlet::new(
        port.name.as_str(),
        ValueType::Tensor {
            ty,
            shape: port.shape.as_slice().into(),
            dimension_symbols: SymbolicDimensions::empty(port.shape.len()),
        },
    )
}
