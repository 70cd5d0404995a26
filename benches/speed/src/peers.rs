//! The table of peers: predictions next to published times, by the kernel that was measured.
//!
//! The description of each peer states what a ratio is worth: a dense solver is a peer; a naive
//! kernel is not; a prediction shorter than what MIOpen's events can show has no peer.

use crate::suites::Suite;
use crate::table::Row;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The shortest time in MIOpen's database in µs: its events do not show shorter ones.
pub(crate) const FLOOR: f64 = 12.35;

/// The measured kernels, from the best peer to those that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    ImplicitGemm,
    Gemm,
    Winograd,
    GemmWrwUniversal,
    Naive,
    Floor,
    HipBlasLtNt,
    HipBlasLtNn,
}

impl Peer {
    const fn describe(self) -> &'static str {
        match self {
            Peer::ImplicitGemm => "MIOpen, implicit GEMM in assembly, with the transposes from and to NCHW",
            Peer::Gemm => "MIOpen, GEMM of a BLAS library, with im2col where the filter has more than one tap",
            Peer::Winograd => "MIOpen, Winograd in assembly",
            Peer::GemmWrwUniversal => "MIOpen, `GemmWrwUniversal`, a GEMM for each image (no dense peer)",
            Peer::Naive => "MIOpen, naive kernel (no peer)",
            Peer::Floor => {
                "MIOpen, where ours is predicted below 12.35 µs, which its events never show (no comparison)"
            }
            Peer::HipBlasLtNt => "hipBLASLt NT, gfx942, device and date not known",
            Peer::HipBlasLtNn => "hipBLASLt NN, pre-production device of 2023 (no comparison)",
        }
    }

    /// Returns the kernel behind a suite's published time, for a graph with this predicted time in
    /// µs; `None` if the source names no known kernel.
    fn of(suite: &str, by: &str, predicted: f64) -> Option<Self> {
        match suite {
            "hipBLASLt NT" => return Some(Peer::HipBlasLtNt),
            "hipBLASLt NN" => return Some(Peer::HipBlasLtNn),
            _ => {}
        }
        let solver = by.rsplit([' ', ':']).next()?;
        if predicted < FLOOR {
            return Some(Peer::Floor);
        }
        Some(match solver {
            "GemmWrwUniversal" => Peer::GemmWrwUniversal,
            _ if solver.starts_with("ConvDirectNaive") => Peer::Naive,
            _ if solver.contains("ImplicitGemm") => Peer::ImplicitGemm,
            _ if solver.contains("Winograd") => Peer::Winograd,
            _ if solver.starts_with("Gemm") => Peer::Gemm,
            _ => return None,
        })
    }
}

/// Returns the table as Markdown. Each row is for one peer, and for equal or different layouts.
pub(crate) fn table(rows: &[Row], suites: &[Suite]) -> String {
    let mut published = BTreeMap::new();
    for (suite, workloads) in suites {
        for workload in workloads {
            for time in &workload.published {
                published.insert((suite.as_str(), workload.name.as_str()), time);
            }
        }
    }
    let mut ratios: BTreeMap<(Peer, bool), Vec<f64>> = BTreeMap::new();
    for row in rows {
        let Some(time) = published.get(&(row.suite.as_str(), row.graph.as_str())) else {
            continue;
        };
        if let Some(peer) = Peer::of(&row.suite, &time.by, row.predicted_us) {
            let is_alike = !row.suite.contains("NHWC");
            let all = ratios.entry((peer, is_alike)).or_default();
            all.push(row.predicted_us / time.microseconds);
        }
    }
    let mut text = "| measured kernel | layout | graphs | mean ratio | half of them | largest |\n\
                    |---|---|--:|--:|--:|--:|\n"
        .to_owned();
    for ((peer, is_alike), mut ratios) in ratios {
        ratios.sort_by(f64::total_cmp);
        let count = ratios.len();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count as f64).exp();
        let quarter = |part: usize| ratios[(count - 1) * part / 4];
        let layout = if is_alike { "the same" } else { "ours NHWC, theirs NCHW" };
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "| {} | {layout} | {count} | predicted {mean:.2} | {:.2} to {:.2} | {:.2} |",
            peer.describe(),
            quarter(1),
            quarter(3),
            quarter(4)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_time_has_a_peer() {
        for (suite, workloads) in crate::suites::suites(false).unwrap() {
            for time in workloads.iter().flat_map(|workload| &workload.published) {
                let peer = Peer::of(&suite, &time.by, 100.0);
                assert!(peer.is_some(), "{suite}: {}", time.by);
            }
        }
    }

    #[test]
    fn peers_are_told_apart() {
        let of = |solver: &str, time| Peer::of("miopen", &format!("MIOpen's database, MI300X: {solver}"), time);
        assert_eq!(
            of("ConvAsmImplicitGemmGTCDynamicFwdXdlopsNHWC", 20.0),
            Some(Peer::ImplicitGemm)
        );
        assert_eq!(of("ConvDirectNaiveConvFwd", 20.0), Some(Peer::Naive));
        assert_eq!(of("GemmWrwUniversal", 20.0), Some(Peer::GemmWrwUniversal));
        assert_eq!(of("GemmFwdRest", 20.0), Some(Peer::Gemm));
        assert_eq!(of("ConvBinWinogradRxSf2x3g1", 20.0), Some(Peer::Winograd));
        assert_eq!(of("ConvBinWinogradRxSf2x3g1", 12.3), Some(Peer::Floor));
    }
}
