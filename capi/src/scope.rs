//! Task groups: a scope waits for all tasks that were spawned into it.

use std::ffi::c_void;

use poach_runtime::{Scope, ThreadPool};

use crate::call::{Context, call};
use crate::pool::{poach_pool, with};
use crate::status::{Error, guard, poach_status};

/// A group of tasks. It is there until `poach_scope_run` returns.
pub struct poach_scope {
    _opaque: [u8; 0],
}

/// The body of a scope, and a task that may spawn others into it.
pub type poach_scope_body =
    Option<unsafe extern "C-unwind" fn(scope: *const poach_scope, context: *mut c_void)>;

fn run(
    body: unsafe extern "C-unwind" fn(*const poach_scope, *mut c_void),
    scope: &Scope<'static>,
    context: Context,
) {
    let scope = std::ptr::from_ref(scope).cast();
    // SAFETY: the body takes the scope, which lives until its tasks have ended, and its context.
    call(|| unsafe { body(scope, context.get()) });
}

/// Runs `body` with a scope, and returns when it and all tasks that were spawned into the scope
/// have ended.
///
/// On a thread that is no worker, `body` runs there, as in `poach_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_scope_run(
    pool: *const poach_pool,
    body: poach_scope_body,
    context: *mut c_void,
) -> poach_status {
    guard(|| {
        let body = body.ok_or_else(|| Error::null("the body"))?;
        let context = Context(context);
        let open = |pool: &ThreadPool| {
            pool.run(|_| poach_runtime::scope(|scope| run(body, scope, context)));
            Ok(())
        };
        // SAFETY: null or a handle.
        unsafe { with(pool, open) }
    })
}

/// Spawns a task into the scope: `task` is called with the scope and the context, once, by any
/// worker.
///
/// On any thread, while the scope is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_scope_spawn(
    scope: *const poach_scope,
    task: poach_scope_body,
    context: *mut c_void,
) -> poach_status {
    guard(|| {
        let task = task.ok_or_else(|| Error::null("the task"))?;
        // SAFETY: null or a scope that is there.
        let scope = unsafe { scope.cast::<Scope<'static>>().as_ref() }
            .ok_or_else(|| Error::null("the scope"))?;
        let context = Context(context);
        scope.spawn(move |scope| run(task, scope, context));
        Ok(())
    })
}
