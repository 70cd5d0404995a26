//! Convolution forward.

use crate::{Numbers, buffers, elements, run, validated};
use rotini_graph::{ConvGeometry, ConvMode, DataType, Graph, GraphBuilder, TensorId, TensorKind, conv_output_extent};
use rotini_reference::{ReferenceError, execute};

struct Conv {
    graph: Graph,
    x: TensorId,
    w: TensorId,
    y: TensorId,
}

/// One packed convolution.
fn conv(types: [DataType; 4], x: &[i64], w: &[i64], geometry: &ConvGeometry) -> Conv {
    let [x_type, w_type, y_type, compute] = types;
    let mut y_dims = vec![x[0], w[0]];
    for axis in 0..x.len() - 2 {
        let extent = conv_output_extent(
            x[axis + 2],
            w[axis + 2],
            geometry.pre_padding[axis],
            geometry.post_padding[axis],
            geometry.stride[axis],
            geometry.dilation[axis],
        );
        y_dims.push(extent.expect("the filter fits"));
    }
    let mut builder = GraphBuilder::new("");
    let (x, w) = (builder.buffer("x", x_type, x), builder.buffer("w", w_type, w));
    let y = builder.buffer("y", y_type, &y_dims);
    builder.conv_fprop(compute, x, w, y, geometry.clone());
    Conv {
        graph: validated(builder),
        x,
        w,
        y,
    }
}

impl Conv {
    fn run(&self, x: &[f64], w: &[f64]) -> Vec<f64> {
        run(&self.graph, &[(self.x, x), (self.w, w)], self.y)
    }
}

const F32: [DataType; 4] = [DataType::F32; 4];

#[test]
fn by_hand_in_one_dimension() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0];
    let w = [1.0, 10.0, 100.0];
    let plain = ConvGeometry::same(1, 0);
    let cases = [
        (plain.clone(), vec![321.0, 432.0, 543.0]),
        (ConvGeometry::same(1, 1), vec![210.0, 321.0, 432.0, 543.0, 54.0]),
        (
            ConvGeometry {
                stride: vec![2],
                ..plain.clone()
            },
            vec![321.0, 543.0],
        ),
        (
            ConvGeometry {
                dilation: vec![2],
                ..plain.clone()
            },
            vec![531.0],
        ),
        (
            ConvGeometry {
                pre_padding: vec![2],
                ..plain.clone()
            },
            vec![100.0, 210.0, 321.0, 432.0, 543.0],
        ),
        (
            ConvGeometry {
                post_padding: vec![2],
                stride: vec![3],
                ..plain.clone()
            },
            vec![321.0, 54.0],
        ),
        (
            ConvGeometry {
                mode: ConvMode::Convolution,
                ..plain
            },
            vec![123.0, 234.0, 345.0],
        ),
    ];
    for (geometry, expected) in cases {
        let got = conv(F32, &[1, 1, 5], &[1, 1, 3], &geometry).run(&x, &w);
        assert_eq!(got, expected, "{geometry:?}");
    }
}

#[test]
fn by_hand_with_groups() {
    // Two groups of two channels with two filters each, 1 by 1.
    let groups = conv(F32, &[1, 4, 1, 1], &[4, 2, 1, 1], &ConvGeometry::same(2, 0));
    let got = groups.run(&[1.0, 2.0, 3.0, 4.0], &[1.0, 10.0, 2.0, 20.0, 1.0, 10.0, 3.0, 30.0]);
    assert_eq!(got, [21.0, 42.0, 43.0, 129.0]);
    // Depthwise with two filters per channel.
    let depthwise = conv(F32, &[1, 2, 2], &[4, 1, 2], &ConvGeometry::same(1, 0));
    let got = depthwise.run(&[1.0, 2.0, 3.0, 4.0], &[1.0, 10.0, 2.0, 20.0, 1.0, 10.0, 2.0, 20.0]);
    assert_eq!(got, [21.0, 42.0, 43.0, 86.0]);
}

/// Computes the convolution by its definition, with one loop per index, over logical positions.
fn definition(
    x_dims: &[i64],
    x: &[f64],
    w_dims: &[i64],
    w: &[f64],
    y_dims: &[i64],
    geometry: &ConvGeometry,
) -> Vec<f64> {
    let at = |dims: &[i64], index: &[i64]| -> usize {
        let flat = dims.iter().zip(index).fold(0, |flat, (dim, index)| flat * dim + index);
        usize::try_from(flat).unwrap()
    };
    let all = |dims: &[i64]| -> Vec<Vec<i64>> {
        dims.iter().fold(vec![vec![]], |prefixes, &dim| {
            prefixes
                .iter()
                .flat_map(|prefix| (0..dim).map(move |index| [prefix.as_slice(), &[index]].concat()))
                .collect()
        })
    };
    let groups = x_dims[1] / w_dims[1];
    all(y_dims)
        .iter()
        .map(|y_index| {
            let first_channel = y_index[1] / (w_dims[0] / groups) * w_dims[1];
            all(&w_dims[1..])
                .iter()
                .filter_map(|tap| {
                    let mut x_index = vec![y_index[0], first_channel + tap[0]];
                    for axis in 0..x_dims.len() - 2 {
                        let position = y_index[axis + 2] * geometry.stride[axis]
                            + tap[axis + 1] * geometry.dilation[axis]
                            - geometry.pre_padding[axis];
                        if position < 0 || position >= x_dims[axis + 2] {
                            return None;
                        }
                        x_index.push(position);
                    }
                    let w_index = [&[y_index[1]], tap.as_slice()].concat();
                    Some(x[at(x_dims, &x_index)] * w[at(w_dims, &w_index)])
                })
                .sum()
        })
        .collect()
}

#[test]
fn by_definition_in_all_ranks() {
    let geometry = |lists: [&[i64]; 4]| ConvGeometry {
        pre_padding: lists[0].to_vec(),
        post_padding: lists[1].to_vec(),
        stride: lists[2].to_vec(),
        dilation: lists[3].to_vec(),
        mode: ConvMode::CrossCorrelation,
    };
    let cases: [(&[i64], &[i64], ConvGeometry); 6] = [
        (&[2, 3, 9], &[4, 3, 4], geometry([&[2], &[1], &[2], &[2]])),
        (
            &[2, 4, 7, 5],
            &[6, 2, 3, 2],
            geometry([&[1, 0], &[0, 2], &[2, 1], &[1, 2]]),
        ),
        (
            &[1, 6, 6, 6],
            &[12, 1, 3, 3],
            geometry([&[1, 1], &[1, 1], &[1, 1], &[1, 1]]),
        ),
        (
            &[1, 2, 20, 20],
            &[3, 2, 5, 5],
            geometry([&[4, 0], &[4, 0], &[3, 2], &[1, 3]]),
        ),
        (
            &[2, 2, 4, 5, 6],
            &[4, 1, 2, 3, 2],
            geometry([&[1, 0, 2], &[0, 1, 0], &[1, 2, 3], &[2, 1, 1]]),
        ),
        (
            &[3, 5, 1, 1],
            &[7, 5, 1, 1],
            geometry([&[0, 0], &[0, 0], &[1, 1], &[1, 1]]),
        ),
    ];
    let mut numbers = Numbers(1);
    let count = |dims: &[i64]| usize::try_from(dims.iter().product::<i64>()).unwrap();
    for (x_dims, w_dims, geometry) in cases {
        let (x, w) = (numbers.take(count(x_dims)), numbers.take(count(w_dims)));
        let conv = conv(F32, x_dims, w_dims, &geometry);
        let y_dims = &conv.graph.tensor(conv.y).unwrap().dims;
        let expected = definition(x_dims, &x, w_dims, &w, y_dims, &geometry);
        assert!(expected.iter().any(|&sum| sum != 0.0));
        assert_eq!(conv.run(&x, &w), expected, "{x_dims:?} with {w_dims:?}, {geometry:?}");
    }
}

#[test]
fn layouts_do_not_change_the_result() {
    let (x_dims, w_dims, y_dims) = ([2, 3, 4, 5], [6, 3, 3, 3], [2, 6, 4, 5]);
    let mut numbers = Numbers(2);
    let (x, w) = (numbers.take(120), numbers.take(162));
    let geometry = ConvGeometry::same(2, 1);
    let expected = conv(F32, &x_dims, &w_dims, &geometry).run(&x, &w);

    // x channels last, w with gaps between its filters, y channels last with gaps between its rows.
    let (x_strides, w_strides, y_strides) = ([60, 1, 15, 3], [40, 9, 3, 1], [160, 1, 40, 6]);
    let mut builder = GraphBuilder::new("");
    let x_id = builder.tensor("x", DataType::F32, &x_dims, &x_strides, TensorKind::Buffer);
    let w_id = builder.tensor("w", DataType::F32, &w_dims, &w_strides, TensorKind::Buffer);
    let y_id = builder.tensor("y", DataType::F32, &y_dims, &y_strides, TensorKind::Buffer);
    builder.conv_fprop(DataType::F32, x_id, w_id, y_id, geometry);
    let graph = validated(builder);

    let flat = |index: &[i64], strides: &[i64]| -> usize {
        usize::try_from(
            index
                .iter()
                .zip(strides)
                .map(|(index, stride)| index * stride)
                .sum::<i64>(),
        )
        .unwrap()
    };
    let logical = |dims: [i64; 4]| {
        let [a, b, c, d] = dims;
        (0..a * b * c * d).map(move |i| [i / (b * c * d), i / (c * d) % b, i / d % c, i % d])
    };
    let spread = |dims: [i64; 4], strides: &[i64], packed: &[f64]| -> Vec<f64> {
        let length = logical(dims).map(|index| flat(&index, strides)).max().unwrap() + 1;
        // Gaps hold NaN, so that reading one shows.
        let mut spread = vec![f64::NAN; length];
        logical(dims)
            .zip(packed)
            .for_each(|(index, &value)| spread[flat(&index, strides)] = value);
        spread
    };
    let got = run(
        &graph,
        &[
            (x_id, &spread(x_dims, &x_strides, &x)),
            (w_id, &spread(w_dims, &w_strides, &w)),
        ],
        y_id,
    );
    let gathered: Vec<f64> = logical(y_dims).map(|index| got[flat(&index, &y_strides)]).collect();
    assert_eq!(gathered, expected);
    let nans = got.iter().filter(|value| value.is_nan()).count();
    assert_eq!(nans, got.len() - expected.len(), "gaps stay as they were");
}

#[test]
fn integers_are_exact_and_wrap_in_the_compute_type() {
    let types = [DataType::I8, DataType::I8, DataType::I32, DataType::I32];
    let plain = ConvGeometry::same(1, 0);
    assert_eq!(
        conv(types, &[1, 3, 1], &[1, 3, 1], &plain).run(&[-128.0, 127.0, -128.0], &[-128.0, 127.0, 3.0]),
        [32129.0]
    );

    let types = [DataType::I32; 4];
    let big = f64::from(1 << 20);
    let got = conv(types, &[1, 2, 1], &[1, 2, 1], &plain).run(&[big, 5.0], &[big, 7.0]);
    assert_eq!(got, [35.0], "2^40 + 35 modulo 2^32");
    let got = conv(types, &[1, 1, 1], &[1, 1, 1], &plain).run(&[f64::from(1 << 16)], &[f64::from(1 << 15)]);
    assert_eq!(got, [f64::from(i32::MIN)]);

    let narrow = [DataType::I8, DataType::I8, DataType::I8, DataType::I32];
    let got = conv(narrow, &[1, 1, 2], &[1, 1, 1], &plain).run(&[100.0, -100.0], &[2.0]);
    assert_eq!(got, [127.0, -128.0], "narrower outputs saturate");
}

#[test]
fn what_is_missing_is_named() {
    let four = conv(F32, &[1, 1, 5, 5, 5, 5], &[1, 1, 3, 3, 3, 3], &ConvGeometry::same(4, 0));
    let error = execute(&four.graph, &mut buffers(&four.graph, &[])).unwrap_err();
    assert!(matches!(error, ReferenceError::Unsupported { .. }), "{error}");

    let conv = conv(F32, &[1, 1, 5], &[1, 1, 3], &ConvGeometry::same(1, 0));
    let mut missing = buffers(&conv.graph, &[]);
    missing.remove(&conv.graph.tensor(conv.w).unwrap().uid);
    let error = execute(&conv.graph, &mut missing).unwrap_err();
    assert!(
        matches!(&error, ReferenceError::MissingBuffer { tensor } if tensor.contains("'w'")),
        "{error}"
    );

    let mut short = buffers(&conv.graph, &[]);
    let y = conv.graph.tensor(conv.y).unwrap();
    short.get_mut(&y.uid).unwrap().pop();
    let error = execute(&conv.graph, &mut short).unwrap_err();
    let expected =
        matches!(&error, ReferenceError::ShortBuffer { tensor, got: 11, needed: 12 } if tensor.contains("'y'"));
    assert!(expected, "{error}");
    assert_eq!(elements(DataType::F32, &short[&y.uid]).len(), 2);
}
