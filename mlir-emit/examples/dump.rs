use rotini_emit::{Target, emit};
use rotini_graph::*;
fn conv(n: i64, c: i64, k: i64, hw: i64, r: i64, stride: i64, g: i64, nhwc: bool, dt: DataType, add: bool) -> Graph {
    let mut b = GraphBuilder::new("conv");
    let t = |b: &mut GraphBuilder, name: &str, d: &[i64]| {
        if nhwc {
            b.buffer_channels_last(name, dt, d)
        } else {
            b.buffer(name, dt, d)
        }
    };
    let p = r / 2;
    let o = (hw + 2 * p - r) / stride + 1;
    let x = t(&mut b, "x", &[n, c, hw, hw]);
    let w = t(&mut b, "w", &[k, c / g, r, r]);
    let bias = t(&mut b, "bias", &[1, k, 1, 1]);
    let y = t(&mut b, "y", &[n, k, o, o]);
    let v0 = b.virtual_tensor("c", DataType::F32, &[n, k, o, o]);
    let v1 = b.virtual_tensor("b", DataType::F32, &[n, k, o, o]);
    let mut geo = ConvGeometry::same(2, p);
    geo.stride = vec![stride; 2];
    b.conv_fprop(DataType::F32, x, w, v0, geo);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[v0, bias], v1);
    if add {
        let res = t(&mut b, "res", &[n, k, o, o]);
        let v2 = b.virtual_tensor("r", DataType::F32, &[n, k, o, o]);
        b.pointwise(DataType::F32, PointwiseMode::Add, &[v1, res], v2);
        b.pointwise(DataType::F32, PointwiseMode::GeluFwd, &[v2], y);
    } else {
        b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[v1], y);
    }
    b.build()
}
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let mut put = |name: &str, mut g: Graph| {
        g.validate().unwrap();
        let (n, _) = g.normalise();
        for t in ["cpu", "gfx942"] {
            let e = emit(&n, &Target::parse(t).unwrap()).unwrap();
            std::fs::write(format!("{dir}/{name}.{t}.mlir"), e.mlir).unwrap();
        }
    };
    put("nhwc_f16", conv(1, 64, 64, 56, 3, 1, 1, true, DataType::F16, false));
    put("nchw_f16", conv(1, 64, 64, 56, 3, 1, 1, false, DataType::F16, false));
    put("nhwc_f32", conv(1, 64, 64, 56, 3, 1, 1, true, DataType::F32, false));
    put("s2_nhwc_bf16", conv(2, 64, 64, 56, 3, 2, 1, true, DataType::Bf16, true));
    put("grouped_nhwc", conv(2, 64, 64, 14, 3, 1, 4, true, DataType::F16, false));
    put(
        "grouped_nchw",
        conv(2, 64, 64, 14, 3, 1, 4, false, DataType::F16, false),
    );
    put("dw_nhwc", conv(2, 64, 64, 14, 3, 1, 64, true, DataType::F16, false));
    put("p1_nhwc", conv(1, 64, 64, 56, 1, 1, 1, true, DataType::F16, true));
    put("p1_nchw", conv(1, 64, 64, 56, 1, 1, 1, false, DataType::F16, false));
    put("f64", conv(1, 16, 16, 14, 3, 1, 1, false, DataType::F64, false));
}
