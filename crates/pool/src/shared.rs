//! What the handles of one [`TaskPool`](crate::TaskPool) share.

use std::sync::Arc;

use poach_memory::Machine;

use crate::admission::Admission;
use crate::policy::Policy;
use crate::salsa::Salsa;

pub(crate) struct Shared<T: Send> {
    pub(crate) pools: Arc<Salsa<T>>,
    pub(crate) admission: Admission<Machine>,
    pub(crate) policy: Policy,
}
