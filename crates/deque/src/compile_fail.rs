//! What safe code cannot write. Each program stands beside a twin that differs in what the error is
//! about, and compiles.

/// An owner's handle in two threads.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::ChaseLev::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::The::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::Thep::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::Split::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::PrivateDeque::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::IdempotentDeque::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::IdempotentFifo::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::IdempotentLifo::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::Multiplicity::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::BwosLifo::<u32>::new());
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(poach_deque::BwosFifo::<u32>::new());
/// ```
///
/// ```
/// fn sent<T: Send>(_: T) {}
/// fn shared<T: Sync>(_: T) {}
/// sent(poach_deque::ChaseLev::<u32>::new());
/// sent(poach_deque::The::<u32>::new());
/// sent(poach_deque::Thep::<u32>::new());
/// sent(poach_deque::Split::<u32>::new());
/// sent(poach_deque::PrivateDeque::<u32>::new());
/// sent(poach_deque::IdempotentDeque::<u32>::new());
/// sent(poach_deque::IdempotentFifo::<u32>::new());
/// sent(poach_deque::IdempotentLifo::<u32>::new());
/// sent(poach_deque::Multiplicity::<u32>::new());
/// sent(poach_deque::BwosLifo::<u32>::new());
/// sent(poach_deque::BwosFifo::<u32>::new());
/// shared(poach_deque::ChaseLev::<u32>::new().thief());
/// ```
mod owners {}

/// Tasks that may not change threads.
///
/// ```compile_fail,E0277
/// poach_deque::Split::<std::rc::Rc<u32>>::new();
/// ```
///
/// ```compile_fail,E0277
/// poach_deque::PrivateDeque::<std::rc::Rc<u32>>::new();
/// ```
///
/// ```compile_fail,E0277
/// poach_deque::Mutex::<std::rc::Rc<u32>>::new();
/// ```
///
/// ```compile_fail,E0277
/// poach_deque::BwosLifo::<std::rc::Rc<u32>>::new();
/// ```
///
/// ```compile_fail,E0277
/// poach_deque::BwosFifo::<std::rc::Rc<u32>>::new();
/// ```
///
/// ```
/// poach_deque::BwosLifo::<std::sync::Arc<u32>>::new();
/// poach_deque::BwosFifo::<std::sync::Arc<u32>>::new();
/// poach_deque::Split::<std::sync::Arc<u32>>::new();
/// poach_deque::PrivateDeque::<std::sync::Arc<u32>>::new();
/// poach_deque::Mutex::<std::sync::Arc<u32>>::new();
/// ```
///
/// A queue that may give a task out twice, of boxes.
///
/// ```compile_fail,E0277
/// poach_deque::IdempotentDeque::<Box<u32>>::with_capacity(2);
/// ```
///
/// ```
/// poach_deque::IdempotentDeque::<u32>::with_capacity(2);
/// ```
mod tasks {}

/// A policy that nobody vouches for.
///
/// ```compile_fail,E0277
/// use poach_deque::{ChaseLev, Unfenced};
/// ChaseLev::<Box<u32>, Unfenced>::default();
/// ```
///
/// ```
/// use poach_deque::{ChaseLev, Full};
/// ChaseLev::<Box<u32>, Full>::default();
/// ```
///
/// ```compile_fail,E0133
/// use poach_deque::{Bounded, Delta, FfCl};
/// let delta = Delta::exactly(core::num::NonZeroU64::MIN);
/// let queue = FfCl::<Box<u32>>::with_policy(Bounded::new(delta)?);
/// # Ok::<(), poach_memory::order::Refused>(())
/// ```
///
/// ```
/// use poach_deque::{Bounded, Delta, FfCl};
/// // SAFETY: the queue has no thieves.
/// let delta = unsafe { Delta::exactly(core::num::NonZeroU64::MIN) };
/// # if cfg!(target_arch = "x86_64") {
/// let queue = FfCl::<Box<u32>>::with_policy(Bounded::new(delta)?);
/// # }
/// # Ok::<(), poach_memory::order::Refused>(())
/// ```
mod policies {}

/// To take oneself for a queue's owner.
///
/// ```compile_fail,E0133
/// let queue = poach_deque::ChaseLev::<u32>::new();
/// poach_deque::Here::owner(&queue, core::ptr::null());
/// ```
///
/// ```
/// let queue = poach_deque::ChaseLev::<u32>::new();
/// // SAFETY: the handle is this thread's.
/// unsafe { poach_deque::Here::owner(&queue, core::ptr::null()) };
/// ```
///
/// ```compile_fail,E0277
/// use poach_deque::Owner;
/// fn sent<T: Send>(_: T) {}
/// sent(poach_deque::Thep::<u32>::new().here());
/// ```
///
/// ```
/// use poach_deque::Owner;
/// fn kept<T>(_: T) {}
/// kept(poach_deque::Thep::<u32>::new().here());
/// ```
mod here {}

/// A head of a task stack, a task that is made in its slot, and a storage.
///
/// ```compile_fail,E0133
/// # use poach_deque::split::Stack;
/// # use poach_memory::Machine;
/// let stack = Stack::<Machine>::new(4, ()).unwrap();
/// stack.bottom();
/// ```
///
/// ```
/// # use poach_deque::split::Stack;
/// # use poach_memory::Machine;
/// let stack = Stack::<Machine>::new(4, ()).unwrap();
/// // SAFETY: this thread is the owner, and keeps the stack.
/// unsafe { stack.bottom() };
/// ```
///
/// ```compile_fail,E0133
/// let queue = poach_deque::Split::<Box<u32>>::new();
/// let _ = queue.push_in_place((), |_, _, ()| {});
/// ```
///
/// ```
/// let queue = poach_deque::Split::<Box<u32>>::new();
/// // SAFETY: a whole task is written.
/// let _ = unsafe { queue.push_in_place((), |task, _, ()| task.write(Box::new(1))) };
/// ```
///
/// ```compile_fail,E0133
/// let queue = poach_deque::Split::<Box<u32>>::new();
/// queue.pop_in_place(|_, _| {});
/// ```
///
/// ```compile_fail,E0133
/// let queue = poach_deque::Split::<Box<u32>>::new();
/// queue.pop_each_in_place(|_, _| true);
/// ```
///
/// ```
/// let queue = poach_deque::Split::<Box<u32>>::new();
/// // SAFETY: the queue is empty; so below.
/// unsafe { queue.pop_in_place(|_, _| {}) };
/// unsafe { queue.pop_each_in_place(|_, _| true) };
/// ```
///
/// ```compile_fail,E0199
/// unsafe impl poach_deque::split::Context for Mine {
///     fn shared(&self) {}
/// }
/// struct Mine;
/// ```
///
/// ```
/// impl poach_deque::split::Context for Mine {
///     fn shared(&self) {}
/// }
/// struct Mine;
/// ```
mod split {}

/// A task's slot, and the head of a stack, without a promise: `Head::push` is unsafe, and so is all
/// that gives a `Head` (`Stack::bottom`, `Pushed`), tells of its `Popped` or reads a `Slot`. So
/// safe code has no `depth`, `as_ptr`, `status`, `descriptor` or `PushError` of a task either, and
/// no `Here` whose `owns` lies.
///
/// ```compile_fail,E0133
/// use poach_deque::split::{Popped, Pushed, PushError, Stack};
/// use poach_memory::Machine;
/// let stack = Stack::<Machine, ()>::new(1, ()).unwrap();
/// stack.bottom().depth();
/// ```
///
/// ```
/// use poach_deque::split::Stack;
/// use poach_memory::Machine;
/// let stack = Stack::<Machine, ()>::new(1, ()).unwrap();
/// stack.capacity();
/// ```
///
/// ```compile_fail,E0133
/// poach_deque::Here::owner(&(), std::ptr::null()).owns(std::ptr::null());
/// ```
mod promises {}

/// Another way to keep tasks in a ring than `Whole`, without a promise: `Storage` is an unsafe
/// trait.
///
/// ```compile_fail,E0200
/// enum Mine {}
/// impl<T> poach_deque::split::Storage<T> for Mine {
///     type Head = T;
///     type Rest = ();
///     unsafe fn write(_: T, _: *mut T, _: *mut ()) {}
///     unsafe fn read(head: *const T, _: *const ()) -> T { unsafe { head.read() } }
///     unsafe fn has_rest(_: *const T) -> bool { false }
/// }
/// ```
mod storages {}
