//! The global pool, which a process makes once.

use std::env;
use std::error::Error;
use std::process::Command;

use rayon_core::{ThreadPoolBuilder, current_num_threads};

#[test]
fn the_global_pool_is_made_once_as_the_environment_says() {
    if env::var_os("RAYON_NUM_THREADS").is_none() {
        let child =
            Command::new(env::current_exe().unwrap()).env("RAYON_NUM_THREADS", "3").status();
        assert!(child.unwrap().success());
        return;
    }
    let threads: usize = env::var("RAYON_NUM_THREADS").unwrap().parse().unwrap();
    assert_eq!(current_num_threads(), threads);
    let error = ThreadPoolBuilder::new().build_global().unwrap_err();
    assert_eq!(error.to_string(), "The global thread pool has already been initialized.");
    assert!(error.source().is_none());
    #[allow(deprecated)]
    let error = rayon_core::initialize(rayon_core::Configuration::new()).unwrap_err();
    assert_eq!(error.to_string(), "The global thread pool has already been initialized.");
}
