//! The global pool, which a process makes once. Each test runs itself again in a process of its own.

use std::env;
use std::error::Error;
use std::process::Command;

use rayon_core::{ThreadPoolBuildError, ThreadPoolBuilder, current_num_threads, join};

/// Whether this is the process that `test` is run in, with three threads as the environment says; if not, starts it.
fn in_child(test: &str) -> bool {
    if env::var_os("CHILD").is_some() {
        return true;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .envs([("CHILD", "1"), ("RAYON_NUM_THREADS", "3")])
        .status();
    assert!(child.unwrap().success());
    false
}

fn is_refused(error: &ThreadPoolBuildError) {
    assert_eq!(error.to_string(), "The global thread pool has already been initialized.");
    assert!(error.source().is_none());
    // What an `unwrap` says.
    assert_eq!(format!("{error:?}"), "ThreadPoolBuildError { kind: GlobalPoolAlreadyInitialized }");
    #[allow(deprecated)]
    let described = error.description();
    assert_eq!(described, error.to_string());
}

#[test]
fn the_global_pool_is_made_once_as_the_environment_says() {
    if in_child("the_global_pool_is_made_once_as_the_environment_says") {
        assert_eq!(current_num_threads(), 3);
        is_refused(&ThreadPoolBuilder::new().build_global().unwrap_err());
        #[allow(deprecated)]
        let error = rayon_core::initialize(rayon_core::Configuration::new()).unwrap_err();
        is_refused(error.downcast_ref().unwrap());
        assert_eq!((current_num_threads(), join(|| 1, || 2)), (3, (1, 2)));
    }
}

#[test]
fn a_program_makes_the_global_pool_once() {
    if in_child("a_program_makes_the_global_pool_once") {
        ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();
        is_refused(&ThreadPoolBuilder::new().num_threads(4).build_global().unwrap_err());
        assert_eq!((current_num_threads(), join(|| 1, || 2)), (2, (1, 2)));
    }
}

#[test]
#[allow(deprecated)]
fn the_old_name_makes_the_global_pool() {
    if in_child("the_old_name_makes_the_global_pool") {
        rayon_core::initialize(rayon_core::Configuration::new().num_threads(2)).unwrap();
        is_refused(&ThreadPoolBuilder::new().build_global().unwrap_err());
        assert_eq!(current_num_threads(), 2);
    }
}
