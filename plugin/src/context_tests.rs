//! Tests of which code a context keeps, and for how long.

use super::*;
use crate::device::Work;
use crate::serialized::Portable;
use rotini_cache::{CodeFacts, CompiledFor, Key};
use rotini_emit::{Signature, Target};
use std::sync::mpsc;
use std::time::Duration;

/// A device and executable that does nothing, and claims to be captured or not.
struct Nothing {
    is_captured: bool,
}

const NOTHING: Nothing = Nothing { is_captured: false };

impl Executable for Nothing {
    fn workspace_bytes(&self) -> u64 {
        0
    }

    fn is_captured(&self, _: Stream) -> bool {
        self.is_captured
    }

    unsafe fn execute(&self, _: Stream, _: &Buffers<'_>) -> Result<(), ExecuteError> {
        Ok(())
    }
}

impl Device for Nothing {
    fn compiled_for(&self) -> &CompiledFor<Target> {
        static CPU: CompiledFor<Target> = CompiledFor {
            target: Target::Cpu,
            features: String::new(),
        };
        &CPU
    }

    fn describe(&self) -> String {
        String::new()
    }

    fn measured_on(&self) -> String {
        String::new()
    }

    fn can_be_captured(&self) -> bool {
        false
    }

    unsafe fn load(&self, _: &Key, _: &[u8], _: &Signature, _: Work) -> Result<Arc<dyn Executable>, Error> {
        Ok(Arc::new(NOTHING))
    }
}

fn code() -> Arc<Code> {
    code_of(Arc::new(NOTHING))
}

fn code_of(executable: Arc<dyn Executable>) -> Arc<Code> {
    Arc::new(Code {
        executable,
        portable: Portable {
            facts: CodeFacts {
                producer: String::new(),
                compiled_for: CompiledFor::from(String::new()),
                workspace_bytes: 0,
                dispatches: 0,
            },
            operations: 0,
            signature: Signature { arguments: vec![] },
            code: bytes::Bytes::new(),
        },
    })
}

#[test]
fn the_least_recently_used_shapes_go() {
    let variable = Variable::new(Arc::new(NOTHING), Graph::default(), &[], 0);
    let most = i64::try_from(MAX_SHAPES).unwrap();
    let codes: Vec<_> = (0..most).map(|_| code()).collect();
    for (shapes, code) in (0..).zip(&codes) {
        assert!(variable.add(&[shapes], Arc::clone(code)).is_empty());
    }
    // The first is used again, so the second is the oldest, then the third.
    assert!(variable.find(&[0]).is_some());
    for gone in [1, 2] {
        let dropped = variable.add(&[most + gone], code());
        assert!(matches!(&dropped[..], [one] if Arc::ptr_eq(one, &codes[usize::try_from(gone).unwrap()])));
        assert!(variable.find(&[gone]).is_none() && variable.find(&[most + gone]).is_some());
    }
    assert!(variable.find(&[0]).is_some() && variable.find(&[3]).is_some());
    // Shapes that are in the table already evict no others.
    let dropped = variable.add(&[0], code());
    assert!(matches!(&dropped[..], [one] if Arc::ptr_eq(one, &codes[0])));
    assert!((3..most).all(|shapes| variable.find(&[shapes]).is_some()));
}

/// If several threads find the table full at once, it still ends with no more than the limit.
#[test]
fn no_more_shapes_stay_than_there_may_be() {
    let variable = Variable::new(Arc::new(NOTHING), Graph::default(), &[], 0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let variable = &variable;
            scope.spawn(move || (0..300).for_each(|shapes| drop(variable.add(&[thread, shapes], code()))));
        }
    });
    assert_eq!(variable.codes.read().unwrap().len(), MAX_SHAPES);
}

/// Code whose `drop` blocks until the test releases it, as if it waited for a device.
struct Slow {
    ends: mpsc::Sender<()>,
    go: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Executable for Slow {
    fn workspace_bytes(&self) -> u64 {
        0
    }

    fn is_captured(&self, _: Stream) -> bool {
        false
    }

    unsafe fn execute(&self, _: Stream, _: &Buffers<'_>) -> Result<(), ExecuteError> {
        Ok(())
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // Both fail at once when the test has ended.
        let _ = self.ends.send(());
        let _ = self.go.lock().unwrap().recv();
    }
}

/// While the `drop` of evicted code blocks, executions of the shapes in the table go on, and the
/// shapes stay in the table.
#[test]
fn nobody_waits_for_code_that_goes() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let runtime = Runtime::new(crate::config::Config::from_env()).unwrap();
    let variable = Variable::new(Arc::new(NOTHING), Graph::default(), &[], 0);
    let (ends, end) = mpsc::channel();
    let (let_go, go) = mpsc::channel();
    let go = Arc::new(Mutex::new(go));
    let most = i64::try_from(MAX_SHAPES).unwrap();
    for shapes in 1..most {
        let (ends, go) = (ends.clone(), Arc::clone(&go));
        variable.add(&[shapes], code_of(Arc::new(Slow { ends, go })));
    }
    variable.add(&[7, 1, 5, 1], code());
    let context = ExecutionContext::new(code(), Bindings::default(), Some(variable), 0);
    let (context, runtime) = (&context, &runtime);
    std::thread::scope(move |scope| {
        let variable = context.variable.as_ref().unwrap();
        // Adds two more sets, on two threads: each blocks in the `drop` of the code that it evicts.
        for shapes in [most, most + 1] {
            scope.spawn(move || drop(variable.add(&[shapes], code())));
        }
        for _ in 0..2 {
            // If one thread held the table's lock while it blocks, the other could not evict
            // anything.
            end.recv_timeout(PATIENCE).unwrap();
        }
        let (done, is_done) = mpsc::channel();
        scope.spawn(move || {
            let stream = Stream {
                pointer: std::ptr::null_mut(),
                ordinal: 0,
            };
            let shape = ShapeOverride {
                uid: 7,
                dims: &[5],
                strides: &[1],
            };
            // SAFETY: there are no buffers.
            let executed = unsafe { context.execute_with_shapes(runtime, stream, std::ptr::null_mut(), &[], &[shape]) };
            done.send(executed.map_err(|error| error.to_string())).unwrap();
        });
        assert_eq!(is_done.recv_timeout(PATIENCE), Ok(Ok(())));
        assert!(variable.find(&[most]).is_some() && variable.find(&[3]).is_some());
        assert!(end.try_recv().is_err(), "more goes than has to");
        drop(let_go);
    });
}

/// The host can launch the graph of a captured execution at any time, without this library's
/// knowledge.
#[test]
fn captured_code_stays_for_as_long_as_its_context() {
    let runtime = Runtime::new(crate::config::Config::from_env()).unwrap();
    let stream = Stream {
        pointer: std::ptr::null_mut(),
        ordinal: 0,
    };
    for is_captured in [false, true] {
        let variable = Variable::new(Arc::new(NOTHING), Graph::default(), &[], 0);
        let captured = code_of(Arc::new(Nothing { is_captured }));
        // Uid, rank, extents and strides.
        variable.add(&[7, 1, 5, 1], Arc::clone(&captured));
        let context = ExecutionContext::new(code(), Bindings::default(), Some(variable), 0);
        let shape = ShapeOverride {
            uid: 7,
            dims: &[5],
            strides: &[1],
        };
        for _ in 0..2 {
            // SAFETY: there are no buffers.
            unsafe { context.execute_with_shapes(&runtime, stream, std::ptr::null_mut(), &[], &[shape]) }.unwrap();
        }
        let variable = context.variable.as_ref().unwrap();
        let most = i64::try_from(MAX_SHAPES).unwrap();
        (0..most).for_each(|shapes| drop(variable.add(&[shapes], code())));
        assert!(variable.find(&[7, 1, 5, 1]).is_none());
        // References of this test and of the context.
        assert_eq!(Arc::strong_count(&captured), 1 + usize::from(is_captured));
        drop(context);
        assert_eq!(Arc::strong_count(&captured), 1);
    }
}
