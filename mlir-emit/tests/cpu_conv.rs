//! Convolutions on the CPU, each form over shapes that stress it. The real compiler compiles them, they run, and a loop that knows nothing
//! of layouts or tiles gives the bits to compare with. Elements are small integers, so every sum is exact in every type and order.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

use half::{bf16, f16};
use iree_sys::compiler::{CompileRequest, Compiler as _, Program, find_program};
use iree_sys::runtime::{
    ElementType, HOST_ALIGNMENT, HalDevice, Instance, Invocation, Module, Parameter, Session, TensorType,
};
use rayon::prelude::*;
use rotini_emit::{Target, emit, workspace_bound};
use rotini_graph::{ConvGeometry, DataType, Graph, GraphBuilder, TensorKind};

/// A convolution and the memory orders of x, w and y: the logical axis of each physical one.
#[derive(Clone, Debug)]
struct Case {
    dims: [usize; 4],
    input: Vec<usize>,
    window: Vec<usize>,
    stride: Vec<usize>,
    dilation: Vec<usize>,
    padding: Vec<(usize, usize)>,
    dtype: DataType,
    orders: [Vec<usize>; 3],
}

/// N, C, K and groups, then the spatial extents of input and filter; stride and dilation 1, no padding, f32, channels last.
fn case<const S: usize>(dims: [usize; 4], input: [usize; S], window: [usize; S]) -> Case {
    Case {
        dims,
        input: input.to_vec(),
        window: window.to_vec(),
        stride: vec![1; S],
        dilation: vec![1; S],
        padding: vec![(0, 0); S],
        dtype: DataType::F32,
        orders: [const { Order::Last }; 3].map(|order| order.axes(2 + S)),
    }
}

#[derive(Clone, Copy)]
enum Order {
    First,
    Last,
    /// Spatial axes, channels, batch.
    BatchLast,
}

impl Order {
    fn axes(self, rank: usize) -> Vec<usize> {
        match self {
            Order::First => (0..rank).collect(),
            Order::Last => std::iter::once(0).chain(2..rank).chain([1]).collect(),
            Order::BatchLast => (2..rank).chain([1, 0]).collect(),
        }
    }
}

impl Case {
    fn stride(mut self, stride: &[usize]) -> Self {
        self.stride = stride.to_vec();
        self
    }

    fn dilation(mut self, dilation: &[usize]) -> Self {
        self.dilation = dilation.to_vec();
        self
    }

    fn padding(mut self, padding: &[(usize, usize)]) -> Self {
        self.padding = padding.to_vec();
        self
    }

    fn pad(self, padding: usize) -> Self {
        let all = vec![(padding, padding); self.input.len()];
        self.padding(&all)
    }

    fn dtype(mut self, dtype: DataType) -> Self {
        self.dtype = dtype;
        self
    }

    fn orders(mut self, orders: [Order; 3]) -> Self {
        self.orders = orders.map(|order| order.axes(2 + self.input.len()));
        self
    }

    /// The types of y and of the computation; y holds every sum.
    fn result(&self) -> (DataType, DataType) {
        match self.dtype {
            DataType::F64 => (DataType::F64, DataType::F64),
            DataType::I8 | DataType::U8 => (DataType::I32, DataType::I32),
            _ => (DataType::F32, DataType::F32),
        }
    }

    /// Logical extents of x, w and y.
    fn shapes(&self) -> [Vec<usize>; 3] {
        let [n, c, k, groups] = self.dims;
        let output = (0..self.input.len()).map(|axis| {
            let (before, after) = self.padding[axis];
            let reach = self.dilation[axis] * (self.window[axis] - 1) + 1;
            (self.input[axis] + before + after - reach) / self.stride[axis] + 1
        });
        [
            [vec![n, c], self.input.clone()].concat(),
            [vec![k, c / groups], self.window.clone()].concat(),
            [n, k].into_iter().chain(output).collect(),
        ]
    }

    fn graph(&self) -> Graph {
        let signed = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<_>>();
        let shapes = self.shapes();
        let (out, compute) = self.result();
        let mut builder = GraphBuilder::new("conv");
        let mut tensor = |index: usize, name: &str, dtype| {
            let strides = signed(&strides(&shapes[index], &self.orders[index]));
            builder.tensor(name, dtype, &signed(&shapes[index]), &strides, TensorKind::Buffer)
        };
        let (x, w) = (tensor(0, "x", self.dtype), tensor(1, "w", self.dtype));
        let y = tensor(2, "y", out);
        let mut geometry = ConvGeometry::same(self.input.len(), 0);
        geometry.stride = signed(&self.stride);
        geometry.dilation = signed(&self.dilation);
        geometry.pre_padding = self.padding.iter().map(|padding| padding.0 as i64).collect();
        geometry.post_padding = self.padding.iter().map(|padding| padding.1 as i64).collect();
        builder.conv_fprop(compute, x, w, y, geometry);
        builder.build()
    }

    /// The definition: x, w and y in their memory orders.
    fn expected(&self, x: &[i64], w: &[i64]) -> Vec<i64> {
        let [x_shape, w_shape, y_shape] = self.shapes();
        let [x_strides, w_strides, y_strides] =
            [(0, &x_shape), (1, &w_shape), (2, &y_shape)].map(|(index, shape)| strides(shape, &self.orders[index]));
        let at = |strides: &[usize], index: &[usize]| strides.iter().zip(index).map(|(s, i)| s * i).sum::<usize>();
        let filters = y_shape[1] / self.dims[3];
        let mut y = vec![0; y_shape.iter().product()];
        for y_index in indices(&y_shape) {
            let mut sum = 0;
            for tap in indices(&w_shape[1..]) {
                let channel = y_index[1] / filters * w_shape[1] + tap[0];
                let mut x_index = vec![y_index[0], channel];
                for axis in 0..self.input.len() {
                    let position = y_index[2 + axis] * self.stride[axis] + tap[1 + axis] * self.dilation[axis];
                    let inside = position.checked_sub(self.padding[axis].0);
                    x_index.extend(inside.filter(|&position| position < self.input[axis]));
                }
                if x_index.len() == x_shape.len() {
                    let w_index = [&[y_index[1]], tap.as_slice()].concat();
                    sum += x[at(&x_strides, &x_index)] * w[at(&w_strides, &w_index)];
                }
            }
            y[at(&y_strides, &y_index)] = sum;
        }
        y
    }
}

/// Every index of a shape.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..shape.iter().product::<usize>()).map(move |mut flat| {
        let mut index = vec![0; shape.len()];
        for (position, extent) in index.iter_mut().zip(shape).rev() {
            *position = flat % extent;
            flat /= extent;
        }
        index
    })
}

fn strides(shape: &[usize], order: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; shape.len()];
    let mut stride = 1;
    for &axis in order.iter().rev() {
        strides[axis] = stride;
        stride *= shape[axis];
    }
    strides
}

/// Bytes of small integers as elements of a type.
fn encode(values: &[i64], dtype: DataType) -> Vec<u8> {
    let each = |value: i64| match dtype {
        DataType::F64 => (value as f64).to_ne_bytes().to_vec(),
        DataType::F32 => (value as f32).to_ne_bytes().to_vec(),
        DataType::F16 => f16::from_f64(value as f64).to_ne_bytes().to_vec(),
        DataType::Bf16 => bf16::from_f64(value as f64).to_ne_bytes().to_vec(),
        DataType::I32 => (value as i32).to_ne_bytes().to_vec(),
        DataType::I8 | DataType::U8 => vec![value as u8],
        other => panic!("no encoding of {other}"),
    };
    values.iter().copied().flat_map(each).collect()
}

fn element(dtype: DataType) -> ElementType {
    match dtype {
        DataType::F64 => ElementType::F64,
        DataType::F32 => ElementType::F32,
        DataType::F16 => ElementType::F16,
        DataType::Bf16 => ElementType::Bf16,
        DataType::I32 => ElementType::I32,
        DataType::I8 | DataType::U8 => ElementType::I8,
        other => panic!("no element type for {other}"),
    }
}

/// Memory that the runtime takes as it is.
struct Memory {
    storage: Vec<u8>,
    offset: usize,
    length: usize,
}

impl Memory {
    fn new(bytes: &[u8]) -> Self {
        let mut storage = vec![0; bytes.len() + HOST_ALIGNMENT];
        let offset = storage.as_ptr().align_offset(HOST_ALIGNMENT);
        storage[offset..][..bytes.len()].copy_from_slice(bytes);
        Memory {
            storage,
            offset,
            length: bytes.len(),
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.storage[self.offset..][..self.length]
    }
}

/// Compiles and runs a case and says what is wrong.
fn run(
    case: &Case,
    program: &Program,
    device: &HalDevice,
    instance: &Instance,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = case.graph();
    graph.validate()?;
    let (graph, _) = graph.normalise();
    let target = Target::Cpu;
    let emitted = emit(&graph, &target)?;
    let request = CompileRequest {
        mlir: &emitted.mlir,
        name: "conv.mlir",
        flags: &emitted.flags,
        dump_executables: None,
    };
    let compiled = program.compile(&request)?;
    if compiled.statistics.allocated_bytes != 0 {
        return Err(format!("{} bytes outside of the workspace", compiled.statistics.allocated_bytes).into());
    }

    // SAFETY: the compiler has just made it.
    let executable = unsafe { Module::load(instance, compiled.vmfb.into()) }?;
    let workspace_bytes = executable.workspace_bytes("main")?;
    let bound = workspace_bound(&graph, &target)?;
    if (workspace_bytes as u64) > bound {
        return Err(format!("a workspace of {workspace_bytes} bytes, more than the bound {bound}").into());
    }

    // A sequence without a period that a layout could hide.
    let integers = |count: usize, factor: u64| {
        let least = if case.dtype == DataType::U8 { 250 } else { -2 };
        (1..=count as u64)
            .map(|i| ((i * factor).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as i64 % 5 + least)
            .collect()
    };
    let [x_shape, w_shape, _] = case.shapes();
    let (x, w): (Vec<i64>, Vec<i64>) = (
        integers(x_shape.iter().product(), 3),
        integers(w_shape.iter().product(), 7),
    );
    let (out, _) = case.result();
    let expected = encode(&case.expected(&x, &w), out);
    let mut buffers = [
        encode(&x, case.dtype),
        encode(&w, case.dtype),
        vec![0xff; expected.len()],
    ]
    .map(|b| Memory::new(&b));
    let mut workspace = Memory::new(&vec![0xff; workspace_bytes]);

    let mut parameters = emitted
        .signature
        .arguments
        .iter()
        .map(|argument| {
            Ok(Parameter::Tensor(TensorType::new(
                element(argument.dtype),
                &argument.shape,
            )?))
        })
        .collect::<Result<Vec<_>, iree_sys::runtime::Error>>()?;
    parameters.extend([Parameter::Workspace, Parameter::WaitFence, Parameter::SignalFence]);
    let mut invocation = Invocation::new(Session::new(device, &executable)?, "main", parameters)?;
    // SAFETY: the memory has the declared sizes and outlives the invocation, which is over when `invoke_blocking` returns.
    unsafe {
        for (index, buffer) in buffers.iter_mut().enumerate() {
            invocation.bind(index, buffer.bytes().as_mut_ptr().cast())?;
        }
        invocation.bind_workspace(workspace.bytes().as_mut_ptr().cast(), workspace_bytes)?;
    }
    invocation.invoke_blocking()?;
    let [_, _, y] = &mut buffers;
    let wrong = y.bytes().iter().zip(&expected).position(|(got, want)| got != want);
    wrong.map_or(Ok(()), |byte| {
        Err(format!("wrong from byte {byte} of {} on", expected.len()).into())
    })
}

fn check(cases: &[Case]) {
    let program = Program::new(&find_program().unwrap()).unwrap();
    let instance = Instance::new().unwrap();
    let device = HalDevice::local_sync(&instance).unwrap();
    let failures: Vec<String> = cases
        .par_iter()
        .filter_map(|case| {
            run(case, &program, &device, &instance)
                .err()
                .map(|error| format!("{case:?}: {error}"))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

const FIRST: [Order; 3] = [Order::First; 3];
const MIXED: [Order; 3] = [Order::Last, Order::First, Order::Last];
const BACK: [Order; 3] = [Order::First, Order::Last, Order::First];
const STRANGE: [Order; 3] = [Order::BatchLast, Order::BatchLast, Order::BatchLast];

#[test]
fn plain_convolutions() {
    check(&[
        case([1, 4, 8, 1], [6, 8], [3, 3]),
        case([1, 5, 7, 1], [13, 17], [3, 3]).pad(1),
        case([2, 5, 7, 1], [13, 17], [3, 3]).pad(1).orders(FIRST),
        case([3, 3, 21, 1], [9, 23], [3, 3]).pad(1),
        case([2, 16, 33, 1], [7, 11], [3, 3]).orders(MIXED),
        case([2, 16, 33, 1], [7, 11], [3, 3]).orders(BACK),
        case([3, 2, 5, 1], [5, 6], [2, 2]).orders(STRANGE),
        case([1, 3, 18, 1], [24, 37], [7, 7])
            .pad(3)
            .stride(&[2, 2])
            .orders(FIRST),
        case([1, 8, 17, 1], [19, 29], [3, 3]).dilation(&[2, 2]).pad(2),
        case([2, 4, 6, 1], [7, 12], [2, 5])
            .padding(&[(1, 0), (2, 1)])
            .stride(&[1, 3])
            .dilation(&[2, 1]),
        case([1, 4, 5, 1], [8, 8], [3, 3]).padding(&[(2, 1), (0, 3)]),
        // Trailing rows and columns that no window reaches; a stride beyond the window; whole tiles that need no more padding.
        case([1, 3, 4, 1], [14, 40], [2, 2]).stride(&[5, 4]),
        case([1, 3, 4, 1], [9, 27], [3, 2]).stride(&[4, 2]),
        case([1, 3, 17, 1], [5, 12], [3, 3]).padding(&[(0, 0), (0, 9)]),
        case([1, 1, 1, 1], [6, 9], [3, 3]).pad(1),
    ]);
}

#[test]
fn element_types() {
    let types = [DataType::F16, DataType::Bf16, DataType::F64, DataType::I8, DataType::U8];
    let cases = types.iter().flat_map(|&dtype| {
        [
            case([2, 6, 18, 1], [6, 9], [3, 3]).pad(1).dtype(dtype),
            case([1, 6, 18, 1], [6, 9], [3, 3]).dtype(dtype).orders(FIRST),
            case([2, 6, 18, 1], [5, 7], [1, 1]).dtype(dtype),
            case([2, 6, 18, 1], [5, 7], [1, 1]).dtype(dtype).orders(FIRST),
            case([1, 6, 12, 6], [6, 9], [3, 3]).pad(1).dtype(dtype),
            case([1, 6, 4, 2], [6, 9], [3, 3]).pad(1).dtype(dtype),
        ]
    });
    check(&cases.collect::<Vec<_>>());
}

#[test]
fn matmuls() {
    check(&[
        case([1, 16, 8, 1], [6, 6], [1, 1]),
        case([3, 16, 8, 1], [6, 6], [1, 1]).orders(FIRST),
        case([1, 7, 19, 1], [5, 9], [1, 1]).orders(MIXED),
        case([2, 7, 19, 1], [5, 9], [1, 1]).orders(BACK),
        case([2, 9, 5, 1], [7, 8], [1, 1]).stride(&[2, 3]),
        case([2, 9, 5, 1], [7, 8], [1, 1]).stride(&[2, 3]).orders(FIRST),
        case([1, 9, 5, 1], [7, 8], [1, 1]).padding(&[(1, 2), (0, 1)]),
        case([3, 4, 5, 1], [3, 3], [1, 1]).orders(STRANGE),
        case([1, 24, 40, 1], [1, 1], [1, 1]).orders(FIRST),
        case([4, 8, 12, 4], [5, 6], [1, 1]),
        case([1, 8, 12, 2], [5, 6], [1, 1]).orders(FIRST),
    ]);
}

/// Windows along one axis or three, and outputs that extend along one axis or none.
#[test]
fn patches() {
    check(&[
        case([2, 6, 4, 1], [15], [3]).pad(1),
        case([2, 6, 20, 1], [15], [3]).pad(1).orders(FIRST),
        case([2, 6, 4, 2], [15], [3]).stride(&[2]).dilation(&[2]),
        case([1, 5, 7, 1], [9, 12], [1, 5]).orders(FIRST),
        case([1, 5, 7, 1], [9, 12], [5, 1]),
        case([2, 5, 7, 1], [3, 12], [3, 3]),
        case([2, 5, 7, 1], [12, 3], [3, 3]).orders(FIRST),
        case([3, 4, 5, 1], [4, 4], [4, 4]),
        case([1, 4, 5, 1], [1, 1], [3, 3]).pad(1).orders(FIRST),
        case([1, 4, 6, 1], [5, 6, 4], [3, 2, 3]).pad(1),
        case([2, 4, 6, 2], [5, 6, 4], [3, 2, 3])
            .pad(1)
            .stride(&[2, 1, 2])
            .orders(FIRST),
        case([1, 3, 6, 1], [4, 9, 10], [1, 3, 3]),
        case([2, 3, 6, 1], [4, 9, 10], [1, 3, 3])
            .stride(&[2, 1, 1])
            .orders(FIRST),
        case([1, 3, 6, 1], [6, 9, 5], [3, 3, 1]),
        case([1, 3, 6, 1], [5, 5, 5], [1, 1, 1]).orders(FIRST),
    ]);
}

#[test]
fn groups() {
    check(&[
        case([1, 8, 6, 2], [7, 9], [3, 3]).pad(1),
        case([2, 8, 6, 2], [7, 9], [3, 3]).pad(1).orders(FIRST),
        case([2, 12, 8, 4], [7, 11], [3, 3])
            .pad(1)
            .stride(&[2, 1])
            .orders(MIXED),
        case([1, 12, 72, 4], [7, 13], [3, 2]).orders(BACK),
        case([1, 32, 48, 16], [6, 9], [3, 3]).pad(1).dilation(&[1, 2]),
        case([1, 128, 128, 64], [4, 5], [2, 2]).orders(FIRST),
        // More groups than are computed one by one.
        case([1, 144, 72, 72], [4, 5], [2, 2]),
        case([2, 144, 72, 72], [4, 5], [1, 1]).orders(FIRST),
    ]);
}

#[test]
fn depthwise() {
    check(&[
        case([1, 16, 16, 16], [10, 10], [3, 3]).pad(1),
        case([2, 16, 16, 16], [10, 11], [3, 3]).pad(1).orders(FIRST),
        case([1, 30, 30, 30], [11, 23], [5, 5]).padding(&[(2, 2), (3, 1)]),
        case([2, 7, 7, 7], [9, 21], [3, 3]).stride(&[2, 2]).orders(MIXED),
        case([1, 6, 12, 6], [8, 13], [3, 3]).pad(1),
        case([2, 6, 18, 6], [8, 13], [3, 3])
            .pad(1)
            .stride(&[1, 2])
            .orders(FIRST),
        case([1, 2, 40, 2], [8, 8], [3, 3])
            .pad(1)
            .dilation(&[2, 2])
            .orders(BACK),
        case([2, 100, 100, 100], [17], [3]).pad(1),
        case([1, 8, 8, 8], [5, 6, 9], [3, 3, 3]).pad(1).orders(FIRST),
        case([1, 8, 16, 8], [6, 7], [1, 1]),
        case([2, 5, 5, 5], [3, 3], [3, 3]).orders(STRANGE),
    ]);
}
