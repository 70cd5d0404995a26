//! Pooling, forward and backward.

use crate::{Numbers, bytes, elements, run, validated};
use rotini_graph::{
    DataType, Graph, GraphBuilder, PaddingMode, ResampleBwd, ResampleFwd, ResampleMode as Mode, TensorId,
};
use rotini_reference::{Buffers, evaluate, execute};

/// The geometry of a pooling.
struct Pool {
    x: Vec<i64>,
    y: Vec<i64>,
    padding: [Vec<i64>; 2],
    stride: Vec<i64>,
    window: Vec<i64>,
    mode: Mode,
    padding_mode: PaddingMode,
}

impl Pool {
    fn new(
        x: &[i64],
        padding: [&[i64]; 2],
        stride: &[i64],
        window: &[i64],
        mode: Mode,
        padding_mode: PaddingMode,
    ) -> Self {
        let mut y = x[..2].to_vec();
        for axis in 0..window.len() {
            let padded = x[axis + 2] + padding[0][axis] + padding[1][axis];
            y.push((padded - window[axis]) / stride[axis] + 1);
        }
        Pool {
            x: x.to_vec(),
            y,
            padding: padding.map(<[i64]>::to_vec),
            stride: stride.to_vec(),
            window: window.to_vec(),
            mode,
            padding_mode,
        }
    }

    fn forward(&self, dtype: DataType) -> (Graph, [TensorId; 3]) {
        let mut b = GraphBuilder::new("");
        let (x, y) = (b.buffer("x", dtype, &self.x), b.buffer("y", dtype, &self.y));
        let index = (self.mode == Mode::Maxpool).then(|| b.buffer("index", DataType::I32, &self.y));
        let op = ResampleFwd {
            x,
            y,
            index,
            pre_padding: self.padding[0].clone(),
            post_padding: self.padding[1].clone(),
            stride: self.stride.clone(),
            window: self.window.clone(),
            resample_mode: self.mode,
            padding_mode: self.padding_mode,
            generate_index: index.is_some(),
        };
        b.node("pool", dtype, op);
        (validated(b), [x, y, index.unwrap_or(y)])
    }

    fn run(&self, x: &[f64]) -> Vec<f64> {
        let (graph, [id, y, _]) = self.forward(DataType::F32);
        run(&graph, &[(id, x)], y)
    }

    fn index(&self, x: &[f64]) -> Vec<f64> {
        let (graph, [id, _, index]) = self.forward(DataType::F32);
        run(&graph, &[(id, x)], index)
    }

    fn backward(&self, dy: &[f64], index: Option<&[f64]>) -> Vec<f64> {
        let mut b = GraphBuilder::new("");
        let (dy_id, dx) = (
            b.buffer("dy", DataType::F32, &self.y),
            b.buffer("dx", DataType::F32, &self.x),
        );
        let index_id = index.map(|_| b.buffer("index", DataType::I32, &self.y));
        let op = ResampleBwd {
            dy: dy_id,
            dx,
            index: index_id,
            pre_padding: self.padding[0].clone(),
            post_padding: self.padding[1].clone(),
            stride: self.stride.clone(),
            window: self.window.clone(),
            resample_mode: self.mode,
            padding_mode: self.padding_mode,
        };
        b.node("pool", DataType::F32, op);
        let inputs: Vec<(TensorId, &[f64])> = [(dy_id, dy)].into_iter().chain(index_id.zip(index)).collect();
        run(&validated(b), &inputs, dx)
    }
}

const NINE: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
const NONE: [&[i64]; 2] = [&[0, 0], &[0, 0]];
const ONE: [&[i64]; 2] = [&[1, 1], &[1, 1]];

#[test]
fn the_largest_element_and_where_it_is() {
    let pool = Pool::new(
        &[1, 1, 3, 3],
        NONE,
        &[1, 1],
        &[2, 2],
        Mode::Maxpool,
        PaddingMode::NegInf,
    );
    assert_eq!(pool.run(&NINE), [5.0, 6.0, 8.0, 9.0]);
    assert_eq!(pool.index(&NINE), [4.0, 5.0, 7.0, 8.0]);
    assert_eq!(pool.index(&[7.0; 9]), [0.0, 1.0, 3.0, 4.0], "the first of equal ones");
    // Two channels of one image: positions count from 0 in each channel.
    let pool = Pool::new(
        &[1, 2, 1, 3],
        NONE,
        &[1, 2],
        &[1, 2],
        Mode::Maxpool,
        PaddingMode::NegInf,
    );
    assert_eq!(pool.index(&[1.0, 2.0, 0.0, 5.0, 4.0, 9.0]), [1.0, 0.0]);
}

#[test]
fn padding_of_a_maximum() {
    let negative = [-4.0, -3.0, -2.0, -1.0];
    let pool = |mode| Pool::new(&[1, 1, 2, 2], [&[1, 1], &[0, 0]], &[1, 1], &[2, 2], Mode::Maxpool, mode);
    assert_eq!(pool(PaddingMode::NegInf).run(&negative), negative, "it never wins");
    assert_eq!(pool(PaddingMode::NegInf).index(&negative), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(
        pool(PaddingMode::Zero).run(&negative),
        [0.0, 0.0, 0.0, -1.0],
        "it competes as 0"
    );
    assert_eq!(pool(PaddingMode::Zero).index(&negative), [-1.0, -1.0, -1.0, 3.0]);
    let all_padding = Pool::new(
        &[1, 1, 1, 1],
        [&[2, 2], &[0, 0]],
        &[1, 1],
        &[1, 1],
        Mode::Maxpool,
        PaddingMode::NegInf,
    );
    let got = all_padding.run(&[1.0]);
    assert_eq!(got[..3], [f64::from(f32::MIN); 3]);
    assert_eq!(got[8], 1.0);
    assert_eq!(all_padding.index(&[1.0])[..3], [-1.0; 3]);
}

#[test]
fn nan_stays_only_where_it_comes_first() {
    let pool = Pool::new(
        &[1, 1, 1, 3],
        NONE,
        &[1, 1],
        &[1, 3],
        Mode::Maxpool,
        PaddingMode::NegInf,
    );
    assert!(pool.run(&[f64::NAN, 2.0, 1.0])[0].is_nan());
    assert_eq!(pool.index(&[f64::NAN, 2.0, 1.0]), [0.0]);
    assert_eq!(pool.run(&[1.0, f64::NAN, 2.0]), [2.0]);
    assert_eq!(pool.run(&[f64::NEG_INFINITY; 3]), [f64::NEG_INFINITY]);
    assert_eq!(pool.index(&[f64::NEG_INFINITY; 3]), [0.0]);
}

#[test]
fn averages_count_what_they_say() {
    let four = [1.0, 2.0, 3.0, 4.0];
    let pool = |mode| {
        Pool::new(
            &[1, 1, 2, 2],
            [&[1, 1], &[0, 0]],
            &[1, 1],
            &[2, 2],
            mode,
            PaddingMode::NotSet,
        )
    };
    assert_eq!(pool(Mode::AvgpoolExcludePadding).run(&four), [1.0, 1.5, 2.0, 2.5]);
    assert_eq!(pool(Mode::AvgpoolIncludePadding).run(&four), [0.25, 0.75, 1.0, 2.5]);
    // One and three spatial axes.
    let line = Pool::new(
        &[1, 1, 5],
        [&[1], &[0]],
        &[2],
        &[3],
        Mode::AvgpoolExcludePadding,
        PaddingMode::Zero,
    );
    assert_eq!(line.run(&[1.0, 2.0, 3.0, 4.0, 5.0]), [1.5, 3.0]);
    let cube: Vec<f64> = (0..8).map(f64::from).collect();
    let volume = Pool::new(
        &[1, 1, 2, 2, 2],
        [&[0; 3], &[0; 3]],
        &[1; 3],
        &[2, 1, 2],
        Mode::AvgpoolIncludePadding,
        PaddingMode::Zero,
    );
    assert_eq!(volume.run(&cube), [2.5, 4.5]);
    // A window of nothing but padding.
    let outside = Pool::new(
        &[1, 1, 1],
        [&[2], &[0]],
        &[1],
        &[1],
        Mode::AvgpoolExcludePadding,
        PaddingMode::Zero,
    );
    assert_eq!(outside.run(&[3.0]), [0.0, 0.0, 3.0]);
}

#[test]
fn the_gradient_of_a_maximum_goes_where_the_index_says() {
    let pool = Pool::new(
        &[1, 1, 3, 3],
        NONE,
        &[1, 1],
        &[2, 2],
        Mode::Maxpool,
        PaddingMode::NegInf,
    );
    let dy = [1.0, 2.0, 3.0, 4.0];
    let backward = |index: &[f64]| pool.backward(&dy, Some(index));
    assert_eq!(
        backward(&[4.0, 4.0, 4.0, 8.0]),
        [0.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0, 4.0],
        "added up"
    );
    assert_eq!(
        backward(&[4.0, -1.0, -1.0, 8.0]),
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 4.0],
        "padding"
    );
    assert_eq!(
        backward(&[8.0, 5.0, 0.0, 99.0]),
        [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0],
        "outside its window"
    );
}

/// Averages are linear, so the gradient is the transpose of the forward map: element i of dx is the
/// dot product of dy with the averages of a unit at i.
#[test]
fn the_gradient_of_an_average_is_its_transpose() {
    /// Dims of x, padding, stride, window.
    type Geometry = (&'static [i64], [&'static [i64]; 2], &'static [i64], &'static [i64]);
    let cases: [Geometry; 3] = [
        (&[1, 2, 4, 5], ONE, &[2, 1], &[3, 2]),
        (&[2, 1, 5, 3], [&[1, 0], &[0, 1]], &[3, 2], &[2, 2]),
        (&[1, 1, 3, 4, 3], [&[1, 0, 1], &[0, 1, 1]], &[1, 2, 1], &[2, 2, 2]),
    ];
    let mut numbers = Numbers(3);
    for (x, padding, stride, window) in cases {
        for mode in [Mode::AvgpoolExcludePadding, Mode::AvgpoolIncludePadding] {
            let pool = Pool::new(x, padding, stride, window, mode, PaddingMode::Zero);
            let count = usize::try_from(x.iter().product::<i64>()).unwrap();
            let dy = numbers.take(usize::try_from(pool.y.iter().product::<i64>()).unwrap());
            let got = pool.backward(&dy, None);
            for (position, got) in got.into_iter().enumerate() {
                let unit: Vec<f64> = (0..count).map(|index| f64::from(u8::from(index == position))).collect();
                let expected: f64 = pool.run(&unit).iter().zip(&dy).map(|(y, dy)| y * dy).sum();
                assert!(
                    (got - expected).abs() < 1e-5,
                    "{mode:?} {x:?} at {position}: {got} for {expected}"
                );
            }
        }
    }
}

#[test]
fn the_gradient_of_a_maximum_is_its_derivative() {
    // All elements differ, so that a small step changes no maximum.
    let pool = Pool::new(&[1, 2, 4, 4], ONE, &[2, 1], &[3, 2], Mode::Maxpool, PaddingMode::NegInf);
    let x: Vec<f64> = (0..32).map(|i| f64::from(i * 7 % 32)).collect();
    let dy = Numbers(9).take(usize::try_from(pool.y.iter().product::<i64>()).unwrap());
    let dx = pool.backward(&dy, Some(&pool.index(&x)));
    let before = pool.run(&x);
    for position in 0..x.len() {
        let mut moved = x.clone();
        moved[position] += 0.5;
        let after = pool.run(&moved);
        let change = after
            .iter()
            .zip(&before)
            .zip(&dy)
            .map(|((after, before), dy)| (after - before) * dy);
        assert_eq!(dx[position], change.sum::<f64>() / 0.5, "at {position}");
    }
}

#[test]
fn wrong_results_do_not_pass() {
    let x: Vec<f64> = (0..18)
        .map(|i| f64::from((f64::from(i) * 12.9898).sin() as f32))
        .collect();
    for mode in [Mode::Maxpool, Mode::AvgpoolExcludePadding, Mode::AvgpoolIncludePadding] {
        let pool = Pool::new(&[1, 2, 3, 3], ONE, &[1, 1], &[3, 3], mode, PaddingMode::Zero);
        let (graph, [_, y, index]) = pool.forward(DataType::F32);
        let mut buffers: Buffers = graph
            .tensors
            .iter()
            .map(|tensor| (tensor.uid, vec![0; 4 * 18]))
            .collect();
        buffers.insert(1, bytes(DataType::F32, &x));
        let evaluation = evaluate(&graph, &buffers).unwrap();
        execute(&graph, &mut buffers).unwrap();
        let (right, before) = (buffers[&2].clone(), vec![0; 4 * 18]);
        assert_eq!(evaluation.judge(y, &right, &before).unwrap().unbounded, 0);
        let mut wrong = elements(DataType::F32, &right);
        wrong[4] += 1e-5;
        evaluation.judge(y, &bytes(DataType::F32, &wrong), &before).unwrap_err();
        if mode == Mode::Maxpool {
            evaluation.judge(index, &buffers[&3], &before).unwrap();
            let mut wrong = elements(DataType::I32, &buffers[&3]);
            wrong[4] += 1.0;
            evaluation
                .judge(index, &bytes(DataType::I32, &wrong), &before)
                .unwrap_err();
        }
    }
}
