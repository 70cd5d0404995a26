//! Execution of a network: a session of ONNX Runtime on the caller's buffers.

use crate::build::build;
use crate::network::{Element, Network, Port};
use crate::settings::Settings;
use crate::weights::Weights;
use ort::AsPointer as _;
use ort::sys::{self, ONNXTensorElementDataType as Number};
use rotini_engine_kit::{Buffers, Execution};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The execution of a network.
pub(crate) struct Session {
    network: Network,
    settings: Settings,
    current: Mutex<Arc<Plan>>,
}

/// A session of a network together with its constant weights.
struct Plan {
    session: ort::session::Session,
    weights: Weights,
    inputs: Ports,
    outputs: Ports,
    /// The values bound to the buffers of the last execution; `None` while an execution uses them.
    bound: Mutex<Option<Bound>>,
}

/// The caller's tensors, with their names as C strings.
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

/// Values bound to buffers.
struct Bound {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves the contents consistent, so poisoning is ignored.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Builds a network whose weights are not known yet.
    ///
    /// # Errors
    ///
    /// Returns ONNX Runtime's error.
    pub(crate) fn new(network: Network, settings: Settings) -> Result<Self, String> {
        let plan = Plan::new(&network, &settings, Weights::default())?;
        Ok(Session {
            network,
            settings,
            current: Mutex::new(Arc::new(plan)),
        })
    }

    /// Returns the plan to run, which is rebuilt if the weights changed.
    ///
    /// # Safety
    ///
    /// The same as for [`Execution::execute`].
    unsafe fn plan(&self, buffers: Buffers<'_>) -> Result<Arc<Plan>, String> {
        let mut current = locked(&self.current);
        if self.settings.has_constants {
            let pointers = Weights::pointers(&self.network, buffers)?;
            // SAFETY: by this function's contract.
            if !unsafe { current.weights.are(&pointers) } {
                // SAFETY: as above.
                let weights = unsafe { Weights::read(&self.network, &pointers) };
                *current = Arc::new(Plan::new(&self.network, &self.settings, weights)?);
            }
        }
        Ok(Arc::clone(&current))
    }
}

impl Execution for Session {
    unsafe fn execute(&self, buffers: Buffers<'_>, _: *mut c_void, _: *mut c_void) -> Result<(), String> {
        // SAFETY: by this function's contract.
        unsafe { self.plan(buffers)?.run(buffers) }
    }
}

impl Plan {
    fn new(network: &Network, settings: &Settings, weights: Weights) -> Result<Self, String> {
        let inputs = network.inputs.iter().filter(|port| !weights.has(port)).cloned();
        Ok(Plan {
            session: build(network, settings, &weights).map_err(|error| error.to_string())?,
            inputs: Ports::new(inputs.collect())?,
            outputs: Ports::new(network.outputs.clone())?,
            weights,
            bound: Mutex::default(),
        })
    }

    /// Returns values bound to the buffers: those of the last execution, if it had the same
    /// buffers.
    ///
    /// # Safety
    ///
    /// The same as for [`Execution::execute`], for as long as the values are used.
    unsafe fn bind(&self, buffers: Buffers<'_>) -> Result<Bound, String> {
        let (inputs, outputs) = (self.inputs.pointers(buffers)?, self.outputs.pointers(buffers)?);
        let last = locked(&self.bound).take();
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

    /// Fails if an output overlaps an input, because ONNX Runtime may write the output before it
    /// has read the whole input.
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

    /// Runs the session on the buffers.
    ///
    /// # Safety
    ///
    /// The same as for [`Execution::execute`].
    unsafe fn run(&self, buffers: Buffers<'_>) -> Result<(), String> {
        // SAFETY: by this function's contract. The values are stored, but not used, after it
        // returns.
        let bound = unsafe { self.bind(buffers) }?;
        let inputs: Vec<*const sys::OrtValue> = bound.inputs.iter().map(|value| value.raw.cast_const()).collect();
        let mut outputs: Vec<*mut sys::OrtValue> = bound.outputs.iter().map(|value| value.raw).collect();
        // SAFETY: the session is alive, and concurrent runs are allowed. All arrays have the
        // lengths that are passed, and the values are bound to memory of their size. Every output
        // has a value, so none is allocated.
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
        *locked(&self.bound) = Some(bound);
        done.map_err(|error| error.to_string())
    }
}

/// A tensor of ONNX Runtime on a buffer.
struct Value {
    raw: *mut sys::OrtValue,
    buffer: *mut c_void,
}

// SAFETY: a value is only accessed through its owner, and ONNX Runtime's values are not tied to a
// thread.
unsafe impl Send for Value {}

impl Value {
    /// Creates a value on a buffer.
    ///
    /// # Safety
    ///
    /// The buffer must have the tensor's bytes whenever the value is used.
    unsafe fn new(port: &Port, buffer: *mut c_void) -> ort::Result<Self> {
        let number = match port.element {
            Element::F32 => Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
            Element::F16 => Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
            Element::Bf16 => Number::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        };
        let (mut memory, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the result pointers are valid for writes and the shape has the length that is
        // passed; the buffer is valid by this function's contract. The memory info is copied into
        // the value.
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
        // SAFETY: the value was created by `new`, and is released only here.
        unsafe { (ort::api().ReleaseValue)(self.raw) };
    }
}
