//! The counters of the scheduler under `loom`, which explores every interleaving: the double collect never reports
//! "done" while work is left, and does report it when none is.

/// The primitives used by `src/counters.rs`, from loom.
mod sync {
    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    }
}

#[path = "../src/counters.rs"]
#[allow(dead_code)]
mod counters;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::SeqCst};

use counters::Counters;

/// A thread that works until it finds no work: one transaction whose first validation fails, so that it is executed
/// and validated once more.
fn work(counters: &Counters, executions: &AtomicU32, validations: &AtomicU32) {
    loop {
        if counters.validation() < counters.execution().min(executions.load(SeqCst)) {
            if counters.claim_validation().is_some() {
                if validations.fetch_add(1, SeqCst) == 0 {
                    counters.lower_execution(0);
                }
                counters.finish();
            }
        } else if counters.execution() < 1 {
            if counters.claim_execution().is_some() {
                if executions.fetch_add(1, SeqCst) == 1 {
                    counters.lower_validation(0);
                }
                counters.finish();
            }
        } else {
            counters.check_done();
            return;
        }
    }
}

#[test]
fn done_means_that_no_work_is_left() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let counters = Arc::new(Counters::new(1, true));
        let executions = Arc::new(AtomicU32::new(0));
        let validations = Arc::new(AtomicU32::new(0));
        let other = {
            let (counters, executions, validations) = (counters.clone(), executions.clone(), validations.clone());
            loom::thread::spawn(move || {
                work(&counters, &executions, &validations);
                if counters.is_done() {
                    assert_eq!((executions.load(SeqCst), validations.load(SeqCst)), (2, 2));
                }
            })
        };
        work(&counters, &executions, &validations);
        if counters.is_done() {
            assert_eq!((executions.load(SeqCst), validations.load(SeqCst)), (2, 2));
        }
        other.join().expect("no panic");
        counters.check_done();
        assert!(counters.is_done(), "no thread works any more, and nothing is left");
    });
}
