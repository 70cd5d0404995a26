//! The gradients of convolutions, against results computed by hand and against the transpose of the
//! forward convolution.

use crate::{Numbers, buffers, run, validated};
use rotini_graph::{
    ConvDgrad, ConvGeometry, ConvMode, ConvWgrad, DataType, Graph, GraphBuilder, TensorId, conv_output_extent,
};
use rotini_reference::evaluate;

const F64: DataType = DataType::F64;

/// One convolution with its two gradients.
struct Conv {
    x: Vec<i64>,
    w: Vec<i64>,
    y: Vec<i64>,
    geometry: ConvGeometry,
}

fn count(dims: &[i64]) -> usize {
    usize::try_from(dims.iter().product::<i64>()).unwrap()
}

impl Conv {
    fn new(x: &[i64], w: &[i64], geometry: ConvGeometry) -> Self {
        let mut y = vec![x[0], w[0]];
        for axis in 0..x.len() - 2 {
            let (pre, post) = (geometry.pre_padding[axis], geometry.post_padding[axis]);
            let (stride, dilation) = (geometry.stride[axis], geometry.dilation[axis]);
            y.push(conv_output_extent(x[axis + 2], w[axis + 2], pre, post, stride, dilation).expect("the filter fits"));
        }
        Conv {
            x: x.to_vec(),
            w: w.to_vec(),
            y,
            geometry,
        }
    }

    fn fprop(&self, x: &[f64], w: &[f64]) -> Vec<f64> {
        let mut b = GraphBuilder::new("");
        let ids = [
            b.buffer("x", F64, &self.x),
            b.buffer("w", F64, &self.w),
            b.buffer("y", F64, &self.y),
        ];
        b.conv_fprop(F64, ids[0], ids[1], ids[2], self.geometry.clone());
        run(&validated(b), &[(ids[0], x), (ids[1], w)], ids[2])
    }

    fn dgrad_graph(&self, operands: DataType, out: DataType, compute: DataType) -> (Graph, [TensorId; 3]) {
        let mut b = GraphBuilder::new("");
        let (dy, w) = (b.buffer("dy", operands, &self.y), b.buffer("w", operands, &self.w));
        let dx = b.buffer("dx", out, &self.x);
        let geometry = self.geometry.clone();
        b.node("dgrad", compute, ConvDgrad { dy, w, dx, geometry });
        (validated(b), [dy, w, dx])
    }

    fn dgrad(&self, dy: &[f64], w: &[f64]) -> Vec<f64> {
        let (graph, [dy_id, w_id, dx]) = self.dgrad_graph(F64, F64, F64);
        run(&graph, &[(dy_id, dy), (w_id, w)], dx)
    }

    fn wgrad(&self, x: &[f64], dy: &[f64]) -> Vec<f64> {
        let mut b = GraphBuilder::new("");
        let (x_id, dy_id) = (b.buffer("x", F64, &self.x), b.buffer("dy", F64, &self.y));
        let dw = b.buffer("dw", F64, &self.w);
        let geometry = self.geometry.clone();
        b.node(
            "wgrad",
            F64,
            ConvWgrad {
                x: x_id,
                dy: dy_id,
                dw,
                geometry,
            },
        );
        run(&validated(b), &[(x_id, x), (dy_id, dy)], dw)
    }
}

#[test]
fn by_hand_in_one_dimension() {
    let (x, w, dy) = ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0], [1.0, 10.0, 100.0]);
    let plain = Conv::new(&[1, 1, 5], &[1, 1, 3], ConvGeometry::same(1, 0));
    assert_eq!(plain.dgrad(&dy, &w), [1.0, 12.0, 123.0, 230.0, 300.0]);
    assert_eq!(plain.wgrad(&x, &dy), [321.0, 432.0, 543.0]);

    let mut geometry = ConvGeometry::same(1, 1);
    geometry.stride = vec![2];
    let padded = Conv::new(&[1, 1, 5], &[1, 1, 3], geometry);
    // Windows start at -1, 1 and 3.
    assert_eq!(padded.dgrad(&dy, &w), [2.0, 13.0, 20.0, 130.0, 200.0]);
    assert_eq!(padded.wgrad(&x, &dy), [420.0, 531.0, 42.0]);

    // With stride 3, no window covers the last two inputs: their gradient is zero.
    let mut geometry = ConvGeometry::same(1, 0);
    geometry.stride = vec![3];
    let skipping = Conv::new(&[1, 1, 5], &[1, 1, 3], geometry);
    assert_eq!(skipping.dgrad(&[2.0], &w), [2.0, 4.0, 6.0, 0.0, 0.0]);
    assert_eq!(skipping.wgrad(&x, &[2.0]), [2.0, 4.0, 6.0]);
}

fn geometry(pre: &[i64], post: &[i64], stride: &[i64], dilation: &[i64], mode: ConvMode) -> ConvGeometry {
    ConvGeometry {
        pre_padding: pre.to_vec(),
        post_padding: post.to_vec(),
        stride: stride.to_vec(),
        dilation: dilation.to_vec(),
        mode,
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn gradients_are_the_transposes_of_the_forward_convolution() {
    use ConvMode::{Convolution, CrossCorrelation};
    let plain = |spatial| ConvGeometry::same(spatial, 0);
    let cases = [
        Conv::new(&[2, 3, 4, 5], &[4, 3, 3, 2], ConvGeometry::same(2, 1)),
        Conv::new(
            &[1, 4, 5, 5],
            &[6, 2, 3, 3],
            geometry(&[1, 0], &[0, 2], &[2, 1], &[1, 2], CrossCorrelation),
        ),
        Conv::new(
            &[1, 3, 6, 4],
            &[6, 1, 2, 2],
            geometry(&[2, 1], &[1, 0], &[3, 2], &[2, 1], Convolution),
        ),
        Conv::new(
            &[2, 2, 9],
            &[3, 2, 2],
            geometry(&[0], &[0], &[4], &[1], CrossCorrelation),
        ),
        Conv::new(
            &[1, 2, 3, 4, 3],
            &[2, 1, 2, 3, 2],
            geometry(&[1, 0, 1], &[0, 1, 1], &[2, 1, 1], &[1, 1, 2], Convolution),
        ),
        Conv::new(&[2, 3, 3, 3], &[2, 3, 1, 1], plain(2)),
    ];
    let mut numbers = Numbers(5);
    for conv in cases {
        let (x, w, dy) = (
            numbers.take(count(&conv.x)),
            numbers.take(count(&conv.w)),
            numbers.take(count(&conv.y)),
        );
        let unit = |position: usize, count: usize| -> Vec<f64> {
            (0..count).map(|index| f64::from(u8::from(index == position))).collect()
        };
        let dx: Vec<f64> = (0..x.len())
            .map(|i| dot(&conv.fprop(&unit(i, x.len()), &w), &dy))
            .collect();
        assert_eq!(
            conv.dgrad(&dy, &w),
            dx,
            "{:?} of {:?} with {:?}",
            conv.geometry,
            conv.x,
            conv.w
        );
        let dw: Vec<f64> = (0..w.len())
            .map(|i| dot(&conv.fprop(&x, &unit(i, w.len())), &dy))
            .collect();
        assert_eq!(
            conv.wgrad(&x, &dy),
            dw,
            "{:?} of {:?} with {:?}",
            conv.geometry,
            conv.x,
            conv.w
        );
    }
}

#[test]
fn integers_wrap_in_the_compute_type() {
    let conv = Conv::new(&[1, 1, 1], &[2, 1, 1], ConvGeometry::same(1, 0));
    let (graph, [dy, w, dx]) = conv.dgrad_graph(DataType::I32, DataType::I32, DataType::I32);
    let big = f64::from(1 << 20);
    assert_eq!(
        run(&graph, &[(dy, &[big, 5.0]), (w, &[big, 7.0])], dx),
        [35.0],
        "2^40 + 35 modulo 2^32"
    );
}

#[test]
fn bounds_grow_with_the_number_of_products_that_reach_an_element() {
    // One third is no multiple of a coarse power of two, so each sum is off by at most its number
    // of terms times u.
    let conv = Conv::new(&[1, 1, 2], &[3, 1, 1], ConvGeometry::same(1, 0));
    let (graph, [dy, w, dx]) = conv.dgrad_graph(DataType::F32, DataType::F32, DataType::F32);
    let third = f64::from(1.0_f32 / 3.0);
    let buffers = buffers(&graph, &[(dy, &[third; 6]), (w, &[third; 3])]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let judge = |value: f32| evaluation.judge(dx, &[value.to_le_bytes(), value.to_le_bytes()].concat(), &[0; 8]);
    let exact = (3.0 * third * third) as f32;
    judge(exact).unwrap();
    judge(exact.next_up().next_up()).unwrap();
    judge(exact.next_up().next_up().next_up().next_up().next_up()).unwrap_err();
}
