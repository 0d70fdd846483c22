//! The behaviour tests and the models, each file a module; a directory holds what several files
//! use.

mod launch;

mod faults;
mod model_termination;
mod model_window;
mod mpi;
mod quick;
mod refused;
mod safe_code;
mod simulated;
