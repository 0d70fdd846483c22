//! The whole public surface of rayon-core 1.13, by its types: code that compiles here on one core
//! compiles on the other. The test is built with either core, as `behaviour.rs` is, which tests
//! what each item does.
//!
//! The functions here call functions of the core with exactly the bounds that its documentation
//! states, so a stricter bound than the original's does not compile. Each call has the original's
//! type parameters, which programs may name.

#![forbid(unsafe_code)]
#![allow(deprecated, reason = "they are part of the surface")]

use std::any::Any;
use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

use rayon_core::{
    BroadcastContext, Configuration, FnContext, Scope, ScopeFifo, ThreadBuilder, ThreadPool,
    ThreadPoolBuildError, ThreadPoolBuilder, Yield, broadcast, current_num_threads,
    current_thread_has_pending_tasks, current_thread_index, in_place_scope, in_place_scope_fifo,
    initialize, join, join_context, max_num_threads, scope, scope_fifo, spawn, spawn_broadcast,
    spawn_fifo, yield_local, yield_now,
};

type Payload = Box<dyn Any + Send>;

/// Neither is called: they are to compile.
#[allow(dead_code)]
mod compiles {
    use super::*;

    fn what_a_thread_asks() {
        let _: fn() -> usize = max_num_threads;
        let _: fn() -> usize = current_num_threads;
        let _: fn() -> Option<usize> = current_thread_index;
        let _: fn() -> Option<bool> = current_thread_has_pending_tasks;
        let _: [fn() -> Option<Yield>; 2] = [yield_now, yield_local];
        let (Yield::Executed | Yield::Idle) = Yield::Idle;
        let _: fn(&FnContext) -> bool = FnContext::migrated;
        let _ = |context: BroadcastContext<'_>| [context.index(), context.num_threads()];
    }

    fn joins<A, B, RA, RB>(pool: &ThreadPool, abcdef: (A, B, A, B)) -> [(RA, RB); 2]
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let (a, b, c, d) = abcdef;
        [join::<A, B, RA, RB>(a, b), pool.join::<A, B, RA, RB>(c, d)]
    }

    fn joins_with_context<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(FnContext) -> RA + Send,
        B: FnOnce(FnContext) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        join_context::<A, B, RA, RB>(a, b)
    }

    fn scopes<'scope, OP, R>(pool: &ThreadPool, a: OP, b: OP) -> [R; 2]
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        [scope::<OP, R>(a), pool.scope::<OP, R>(b)]
    }

    fn scopes_fifo<'scope, OP, R>(pool: &ThreadPool, a: OP, b: OP) -> [R; 2]
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        [scope_fifo::<OP, R>(a), pool.scope_fifo::<OP, R>(b)]
    }

    fn scopes_in_place<'scope, OP, R>(pool: &ThreadPool, a: OP, b: OP) -> [R; 2]
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        [in_place_scope::<OP, R>(a), pool.in_place_scope::<OP, R>(b)]
    }

    fn scopes_fifo_in_place<'scope, OP, R>(pool: &ThreadPool, a: OP, b: OP) -> [R; 2]
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        [in_place_scope_fifo::<OP, R>(a), pool.in_place_scope_fifo::<OP, R>(b)]
    }

    fn tasks_of_a_scope<'scope, BODY, EACH>(s: &Scope<'scope>, body: BODY, each: EACH)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
        EACH: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        s.spawn::<BODY>(body);
        s.spawn_broadcast::<EACH>(each);
    }

    fn tasks_of_a_fifo_scope<'scope, BODY, EACH>(s: &ScopeFifo<'scope>, body: BODY, each: EACH)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
        EACH: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        s.spawn_fifo::<BODY>(body);
        s.spawn_broadcast::<EACH>(each);
    }

    fn detached<F, EACH>(pool: &ThreadPool, [a, b, c, d]: [F; 4], [e, f]: [EACH; 2])
    where
        F: FnOnce() + Send + 'static,
        EACH: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        spawn::<F>(a);
        spawn_fifo::<F>(b);
        pool.spawn::<F>(c);
        pool.spawn_fifo::<F>(d);
        spawn_broadcast::<EACH>(e);
        pool.spawn_broadcast::<EACH>(f);
    }

    fn broadcasts<OP, R>(pool: &ThreadPool, a: OP, b: OP) -> [Vec<R>; 2]
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        [broadcast::<OP, R>(a), pool.broadcast::<OP, R>(b)]
    }

    fn of_a_pool<OP, R>(pool: &ThreadPool, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        let _: usize = pool.current_num_threads();
        let _: Option<usize> = pool.current_thread_index();
        let _: Option<bool> = pool.current_thread_has_pending_tasks();
        let _: [Option<Yield>; 2] = [pool.yield_now(), pool.yield_local()];
        pool.install::<OP, R>(op)
    }

    fn builders<NAME, PANIC, START>(
        name: NAME,
        panic: PANIC,
        start: START,
        exit: START,
    ) -> ThreadPoolBuilder
    where
        NAME: FnMut(usize) -> String + 'static,
        PANIC: Fn(Payload) + Send + Sync + 'static,
        START: Fn(usize) + Send + Sync + 'static,
    {
        ThreadPoolBuilder::new()
            .thread_name::<NAME>(name)
            .num_threads(1)
            .use_current_thread()
            .panic_handler::<PANIC>(panic)
            .stack_size(1 << 20)
            .breadth_first()
            .start_handler::<START>(start)
            .exit_handler::<START>(exit)
    }

    fn builds([a, b]: [ThreadPoolBuilder; 2]) -> Result<(ThreadPool, ()), ThreadPoolBuildError> {
        Ok((a.build()?, b.build_global()?))
    }

    fn builds_with_a_handler<F>(spawn: F) -> Result<ThreadPool, ThreadPoolBuildError>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        // It keeps the other settings, and can be set first as well as last.
        let builder = ThreadPoolBuilder::new().num_threads(2).spawn_handler::<F>(spawn);
        builder.stack_size(1 << 20).thread_name(|index| index.to_string()).build()
    }

    fn builds_scoped<W, F, R>(wrapper: W, with: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        ThreadPoolBuilder::default().build_scoped::<W, F, R>(wrapper, with)
    }

    fn threads(thread: ThreadBuilder) {
        let _: usize = thread.index();
        let _: Option<&str> = thread.name();
        let _: Option<usize> = thread.stack_size();
        thread.run();
    }

    fn the_old_names<NAME, PANIC, START>(
        name: NAME,
        panic: PANIC,
        start: START,
        exit: START,
    ) -> Result<(), Box<dyn Error>>
    where
        NAME: FnMut(usize) -> String + 'static,
        PANIC: Fn(Payload) + Send + Sync + 'static,
        START: Fn(usize) + Send + Sync + 'static,
    {
        let _: Result<ThreadPool, Box<dyn Error>> = Configuration::new().build();
        let _: Result<ThreadPool, Box<dyn Error>> = ThreadPool::new(Configuration::default());
        initialize(
            Configuration::new()
                .thread_name::<NAME>(name)
                .num_threads(1)
                .panic_handler::<PANIC>(panic)
                .stack_size(1 << 20)
                .breadth_first()
                .start_handler::<START>(start)
                .exit_handler::<START>(exit),
        )
    }

    fn traits() {
        fn shows<T: Debug>() {}
        fn fails<T: Error + Send + Sync + 'static>() {}
        fn compares<T: Copy + Eq + Debug>() {}
        shows::<ThreadPool>();
        shows::<ThreadPoolBuilder>();
        shows::<ThreadBuilder>();
        shows::<Scope<'_>>();
        shows::<ScopeFifo<'_>>();
        shows::<FnContext>();
        shows::<BroadcastContext<'_>>();
        shows::<Configuration>();
        fails::<ThreadPoolBuildError>();
        compares::<Yield>();
    }
}

/// The auto traits that a type has: an inherent constant takes precedence over a trait's constant.
struct Traits<T>(PhantomData<T>);

macro_rules! ask {
    ($($name:ident: $bound:path, $no:ident;)*) => {
        $(
            #[allow(dead_code, reason = "nothing that is asked about may lack it")]
            trait $no {
                const $name: bool = false;
            }
            impl<T> $no for Traits<T> {}
            impl<T: $bound> Traits<T> {
                const $name: bool = true;
            }
        )*
    };
}

ask! {
    SEND: Send, NoSend;
    SYNC: Sync, NoSync;
    UNPIN: Unpin, NoUnpin;
    UNWINDS: UnwindSafe, NoUnwinds;
    REF_UNWINDS: RefUnwindSafe, NoRefUnwinds;
}

/// The traits of a type, in the order in which they are asked for.
macro_rules! traits_of {
    ($type:ty) => {{
        type T = Traits<$type>;
        [T::SEND, T::SYNC, T::UNPIN, T::UNWINDS, T::REF_UNWINDS]
    }};
}

#[test]
fn what_may_be_sent_and_shared_is_what_the_original_has() {
    let (yes, no) = (true, false);
    // The question can be answered in both ways.
    assert_eq!(traits_of!(u8), [yes; 5]);
    assert_eq!(traits_of!(std::rc::Rc<std::cell::Cell<u8>>), [no, no, yes, no, no]);

    // Send, Sync, Unpin, UnwindSafe and RefUnwindSafe.
    assert_eq!(traits_of!(ThreadPool), [yes, yes, yes, no, no]);
    assert_eq!(traits_of!(ThreadPoolBuilder), [no, no, yes, no, no]);
    assert_eq!(traits_of!(Configuration), [no, no, yes, no, no]);
    assert_eq!(traits_of!(ThreadPoolBuildError), [yes, yes, yes, no, no]);
    assert_eq!(traits_of!(ThreadBuilder), [yes, no, yes, no, no]);
    assert_eq!(traits_of!(Scope<'static>), [yes, yes, yes, no, no]);
    assert_eq!(traits_of!(ScopeFifo<'static>), [yes, yes, yes, no, no]);
    assert_eq!(traits_of!(FnContext), [no, no, yes, yes, yes]);
    assert_eq!(traits_of!(BroadcastContext<'static>), [no, no, yes, no, no]);
    assert_eq!(traits_of!(Yield), [yes; 5]);
}

#[test]
fn builders_and_errors_show_themselves() {
    let builder = ThreadPoolBuilder::new().num_threads(3).thread_name(|i| i.to_string());
    let shown = "ThreadPoolBuilder { num_threads: 3, use_current_thread: false, get_thread_name: Some(<closure>), \
                 panic_handler: None, stack_size: None, start_handler: None, exit_handler: None, breadth_first: false }";
    assert_eq!(format!("{builder:?}"), shown);
    let pool = builder.build().unwrap();
    assert!(format!("{pool:?}").starts_with("ThreadPool"));
    pool.scope(|s| assert!(format!("{s:?}").starts_with("Scope")));
    pool.scope_fifo(|s| assert!(format!("{s:?}").starts_with("ScopeFifo")));
    pool.broadcast(|c| assert!(format!("{c:?}").starts_with("BroadcastContext")));
}

#[test]
fn a_setting_of_the_old_builder_is_one_of_the_new() {
    let new = |index: usize| index.to_string();
    let pairs: [(Configuration, ThreadPoolBuilder); 7] = [
        (Configuration::new().num_threads(3), ThreadPoolBuilder::new().num_threads(3)),
        (Configuration::new().thread_name(new), ThreadPoolBuilder::new().thread_name(new)),
        (Configuration::new().panic_handler(drop), ThreadPoolBuilder::new().panic_handler(drop)),
        (Configuration::new().stack_size(1 << 20), ThreadPoolBuilder::new().stack_size(1 << 20)),
        (Configuration::new().breadth_first(), ThreadPoolBuilder::new().breadth_first()),
        (Configuration::new().start_handler(drop), ThreadPoolBuilder::new().start_handler(drop)),
        (Configuration::new().exit_handler(drop), ThreadPoolBuilder::new().exit_handler(drop)),
    ];
    let default = format!("{:?}", ThreadPoolBuilder::new());
    for (old, new) in pairs {
        let new = format!("{new:?}");
        assert!(format!("{old:?}").contains(&new), "{old:?} {new}");
        assert_ne!(new, default);
    }
}

#[test]
fn the_old_names() {
    let configuration = Configuration::new().num_threads(2).thread_name(|i| i.to_string());
    assert_eq!(configuration.build().unwrap().current_num_threads(), 2);
    assert_eq!(
        ThreadPool::new(Configuration::default().num_threads(1)).unwrap().current_num_threads(),
        1
    );
}
