//! The counts for the time model, on kernels whose counts are known.

use std::sync::Arc;

use rotini_time::{Operands, Record, Step};

use super::{Test, test};
use crate::{Sample, profile::Groups};

/// Returns the record of a launch of which at most `workgroups` are run.
fn record(test: Test, workgroups: u64, window: Option<u64>) -> Arc<Record> {
    let enough = Sample::ENOUGH;
    sampled(
        test,
        Sample {
            workgroups,
            window,
            enough,
        },
    )
}

fn sampled(test: Test, sample: Sample) -> Arc<Record> {
    let mut test = Test {
        sample: Some(sample),
        ..test
    };
    test.launch().unwrap().record.unwrap()
}

fn steps(record: &Record) -> Vec<Step> {
    record.instructions.iter().map(|instruction| instruction.step).collect()
}

#[test]
fn lines_and_segments_are_those_of_the_lanes() {
    // First contiguous dwords, then a separate line for each of 16 lanes, then the first access
    // again, which hits the cache.
    let text = "v_lshlrev_b32_e32 v1, 2, v0\nv_lshlrev_b32_e32 v2, 7, v0\nglobal_load_dword v3, v1, s[4:5]\ns_mov_b64 exec, 0xffff\n\
                global_load_dword v4, v2, s[4:5]\nglobal_load_dword v5, v1, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_store_dwordx2 v2, v[4:5], s[6:7]";
    let record = record(test(text), 8, None);
    let load = |segments, lines, missed: f32, fresh: f32| Step::Load {
        dwords: 1,
        segments,
        lines,
        missed,
        fresh,
        misses: missed.min(1.0),
        freshes: fresh.min(1.0),
    };
    let steps = steps(&record);
    assert_eq!(steps[4], load(4.0, 2.0, 2.0, 2.0));
    // Two of the sixteen lines were already loaded by the first load.
    assert_eq!(steps[6], load(16.0, 16.0, 14.0, 14.0));
    assert_eq!(steps[7], load(1.0, 1.0, 0.0, 0.0));
    let store = Step::Store {
        dwords: 2,
        bytes: 16.0 * 8.0,
        segments: 16.0,
        lines: 16.0,
    };
    assert_eq!(steps[9], store);
    assert_eq!((steps[0], steps[8]), (Step::Scalar, Step::Wait(Some(0), None)));
    // 16 lines of the first buffer are loaded, 16 of the second stored.
    assert_eq!(record.footprint, 32 * 128);
}

#[test]
fn a_part_of_an_allocation_is_used() {
    // Each of four workgroups loads its own line of a large buffer.
    let text = "s_lshl_b32 s20, s2, 16\nv_mov_b32_e32 v1, s20\nglobal_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(0)";
    let of = |workgroups| {
        let mut test = test(text).buffers(vec![vec![0; 64 << 16]; 2]);
        test.grid = 4;
        record(test, workgroups, None).footprint / 128
    };
    assert_eq!(of(100), 4);
    assert_eq!(of(2), 4);
}

#[test]
fn lines_that_a_window_shares_are_fresh_once() {
    // All workgroups load the same line: only the first of a die's window finds it fresh.
    let text = "v_lshlrev_b32_e32 v1, 2, v0\nglobal_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(0)";
    let of = |workgroups, window| {
        let mut test = test(text);
        test.grid = 64;
        let record = record(test, workgroups, window);
        let Step::Load { missed, fresh, .. } = steps(&record)[3] else {
            panic!("no load");
        };
        (record.sampled, missed, fresh)
    };
    // Eight dies with eight of the 64 workgroups each. A compute unit holds one workgroup, so a
    // window is 38, and a sample of 100 has room for two dies.
    assert_eq!(of(100, None), (16, 2.0, 0.25));
    assert_eq!(of(100, Some(8)), (64, 2.0, 0.25));
    assert_eq!(of(12, Some(4)), (12, 2.0, 0.5));
    assert_eq!(of(2, None), (2, 2.0, 1.0));
}

#[test]
fn a_sample_lies_in_the_middle() {
    // Matters where each workgroup has more work than the one before, as below a causal mask.
    for groups in [1, 2, 7, 64, 608, 609, 1000, 1024, 1216, 2048, 65536] {
        for workgroups in [1, 12, 76, 152, 608] {
            let sample = Sample {
                workgroups,
                window: None,
                enough: 0,
            };
            let chosen: Vec<u64> = Groups::new(sample, 2, groups, None).iter().collect();
            let mean = chosen.iter().sum::<u64>() as f64 / chosen.len() as f64;
            let middle = (groups - 1) as f64 / 2.0;
            assert!(
                (mean - middle).abs() <= 8.0,
                "{workgroups} of {groups}: {mean}, not {middle}"
            );
        }
    }
}

#[test]
fn all_dies_count() {
    // Of every eight workgroups the first loads one line, the others two: a single die would show
    // only one of these.
    let text = "s_and_b32 s20, s2, 7\ns_min_u32 s20, s20, 1\ns_lshl_b32 s20, s20, 6\nv_mov_b32_e32 v2, s20\nv_lshl_add_u32 v1, v0, 1, v2\n\
                global_load_ushort v3, v1, s[4:5]\ns_waitcnt vmcnt(0)";
    let mut test = test(text);
    test.grid = 64;
    let record = record(test, 64, Some(8));
    let Some(Step::Load { lines, .. }) = steps(&record)
        .into_iter()
        .find(|step| matches!(step, Step::Load { .. }))
    else {
        panic!("no load");
    };
    assert_eq!((record.sampled, lines), (64, 1.875));
}

#[test]
fn of_long_work_there_are_fewer_dies() {
    // A wave runs a few instructions more than these; with a window of two, all its workgroups run.
    let text = "s_nop 0\n".repeat(100);
    let of = |enough| {
        let mut test = test(&text);
        test.grid = 64;
        let sample = Sample {
            workgroups: 64,
            window: Some(2),
            enough,
        };
        let record = sampled(test, sample);
        (record.sampled, record.path.len() > 100)
    };
    assert_eq!(
        [of(0), of(200), of(300), of(1 << 20)],
        [2, 2, 4, 16].map(|sampled| (sampled, true))
    );
}

#[test]
fn of_very_long_work_a_part_of_a_window_tells_what_the_whole_one_shares() {
    // Each workgroup loads a line that all workgroups load, then one that four share, then its own.
    let text = format!(
        "s_lshl_b32 s20, s2, 8\ns_lshr_b32 s21, s2, 5\ns_lshl_b32 s21, s21, 8\ns_add_u32 s21, s21, 0x10000\nv_mov_b32_e32 v0, 0\n\
         v_mov_b32_e32 v1, s21\nv_mov_b32_e32 v2, s20\nglobal_load_dword v3, v0, s[4:5] offset:2048\nglobal_load_dword v3, v1, s[4:5]\n\
         global_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)\n{}",
        "s_nop 0\n".repeat(100)
    );
    let of = |enough| {
        let mut test = test(&text).buffers(vec![vec![0; 1 << 17]; 2]);
        test.grid = 256;
        let sample = Sample {
            workgroups: 32,
            window: Some(32),
            enough,
        };
        let record = sampled(test, sample);
        let loads: Vec<f32> = steps(&record)
            .into_iter()
            .filter_map(|step| match step {
                Step::Load { fresh, freshes, .. } => {
                    assert_eq!(fresh, freshes);
                    Some(fresh)
                }
                _ => None,
            })
            .collect();
        (record.sampled, loads)
    };
    let whole = vec![1.0 / 32.0, 0.25, 1.0];
    assert_eq!(of(1 << 20), (32, whole.clone()));
    // A workgroup runs a little more than a hundred instructions.
    let (sampled, loads) = of(400);
    assert_eq!(sampled, 8);
    for (part, whole) in loads.iter().zip(&whole) {
        assert!((part - whole).abs() < 0.04, "{loads:?}, not {whole:?}");
    }
}

/// `v_mfma_f32_16x16x16_f16`.
const MATRIX: Step = Step::Mfma {
    clocks: 16,
    operands: Operands::F16,
};

#[test]
fn the_work_of_workgroups_is_known_if_it_differs() {
    // Each workgroup's loop count is its number plus one.
    let loops = "s_add_u32 s20, s2, 1\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 -3";
    let of = |text: &str| {
        let mut launch = test(text);
        launch.grid = 256;
        record(launch, 8, None).work.clone()
    };
    let work = of(loops);
    assert!(work.len() > 60, "{}", work.len());
    assert_eq!((work[0].0, work.last().unwrap().0), (0, 255));
    for (group, work) in work {
        let expected = (f64::from(work), (group as f64 + 2.0) / 130.0);
        assert!((expected.0 - expected.1).abs() < 0.05, "{group}: {expected:?}");
    }
    assert_eq!(of("s_nop 0"), []);
}

#[test]
fn the_way_is_that_of_a_workgroup_with_mean_work() {
    // A sawtooth, as of the tiles of a head below a causal mask: the middle of the grid begins a
    // head, and has the least work.
    let text = "s_and_b32 s20, s2, 31\ns_lshl_b32 s20, s20, 3\ns_add_u32 s20, s20, 1\n\
                s_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 -3";
    for groups in [256, 1024, 4096] {
        let mut launch = test(text);
        launch.grid = groups;
        let record = record(launch, 76, None);
        let rounds = record.path.len() as f64 / 3.0;
        assert!((rounds - 8.0 * 15.5).abs() < 20.0, "{groups}: {rounds}");
        let work = record.work.iter().map(|&(_, work)| work);
        let mean = work.sum::<f32>() / record.work.len() as f32;
        assert!((mean - 1.0).abs() < 0.1, "{groups}: {mean}");
    }
}

#[test]
fn the_path_has_the_loops() {
    let text = "v_lshlrev_b32_e32 v1, 2, v0\nv_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0\ns_movk_i32 s20, 9\n\
                v_mfma_f32_16x16x16_f16 a[0:3], v[2:3], v[2:3], a[0:3]\nv_mul_lo_u32 v4, v0, v0\ns_sub_u32 s20, s20, 1\n\
                s_cmp_lg_u32 s20, 0\ns_cbranch_scc1 -7\nds_write_b32 v1, v2\ns_nop 4\ns_barrier";
    let mut launch = test(text).lds(1024).lanes(128);
    launch.grid = 2;
    let record = record(launch, 8, None);
    assert_eq!((record.waves, record.lds, record.workgroups), (2, 1024, 2));
    assert_eq!(record.path.len(), 2 + 4 + 9 * 5 + 3 + 1);
    let steps = steps(&record);
    let ran: Vec<Step> = record
        .path
        .instructions()
        .map(|number| steps[number as usize])
        .collect();
    let count = |step| ran.iter().filter(|&&other| other == step).count();
    assert_eq!((count(MATRIX), count(Step::Valu(16)), count(Step::Branch)), (9, 9, 9));
    assert_eq!(
        ran[ran.len() - 4..ran.len() - 2],
        [
            Step::Lds {
                bytes: 256.0,
                conflicts: 0.0
            },
            Step::Nop(5)
        ]
    );
    assert_eq!(ran.last(), Some(&Step::End));
    let matrix = record.instructions.iter().find(|i| i.step == MATRIX).unwrap();
    assert_eq!(matrix.after, 5, "the round before made its accumulator");
}

#[test]
fn a_record_is_the_same_after_it_was_written() {
    let text = "v_lshlrev_b32_e32 v1, 2, v0\nglobal_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_atomic_add v1, v3, s[6:7]";
    let record = record(test(text), 8, None);
    let text = serde_json::to_string(&*record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), *record);
    for broken in [
        text.replace("a64,2", "a64"),
        text.replace("a64,2", "a64,NaN"),
        text.replace("\"waves\":1", "\"waves\":0"),
    ] {
        assert_ne!(broken, text);
        assert!(serde_json::from_str::<Record>(&broken).is_err(), "{broken}");
    }
}
