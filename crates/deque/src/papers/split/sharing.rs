//! What the two split deques have in common: how a thief asks, how the owner answers, and how a
//! thief helps itself to tasks of an owner that does not come back.
//!
//! The stack of forks and the queue of spawned tasks differ in where a task lies and in where the
//! owner keeps its head. They share this: thieves claim from [`Bounds`]; the owner compares its
//! head with a [`SplitRequest`] at each push and pop, and goes on without another look unless the
//! comparison says that something is up.
//!
//! # The order of an owner's operation
//!
//! ```text
//! owner's push                     owner's pop                      thief
//!   U1  make the task visible        O1  make the task invisible      T1  raise the request
//!   U2  light fence                  O2  light fence                  T2  heavy fence
//!   U3  load the request, compare    O3  load the request, compare    T3  look at what is visible
//!                                    O4  take the task
//! ```
//!
//! A task is visible when a thief that looks finds it: its mark in the stack, the head of the
//! queue. *For each push and each thief, either U3 sees T1, or T3 sees U1*; likewise O3 and O1.
//! That is Dekker's protocol with an asymmetric fence, which the thief pays for alone. Each section
//! below uses it.
//!
//! An owner that has passed O3 and takes nothing makes the task visible again. For a thief that
//! looked after O1 this is a push of that task, so the owner goes through U1 to U3. (A pop that has
//! lost its task to a thief makes none visible: it stores the head above a task that is claimed.)
//!
//! # A request
//!
//! A thief that finds nothing shared raises the request (T1). The owner whose comparison fails
//! shares the older half of its private tasks ([`attend`](Sharing::attend)). It takes the request
//! down first, shares second: a thief that has seen the split move by an acquiring load of
//! [`Bounds`], and finds nothing left there, sees the request down and raises it again. (That load
//! is in [`claim`](Bounds::claim) and acquires for this reason: with a relaxed one the
//! thief may read the word as it was, take the request that has been answered for its own, and
//! leave none.)
//!
//! An owner that has nothing to share raises the request again itself: its next push shares. One
//! that wishes to share later keeps the request in a word of its own, and is stopped one task above
//! the split: by the pop of its lowest private task.
//!
//! # A thief that is about to sleep
//!
//! It raises the request (T1), fences (T2), and looks
//! ([`has_private_tasks`](Sharing::has_private_tasks), T3). A task whose U1 it does not see will be
//! shared by its push, since U3 sees T1. So no task is left behind by an owner that the system
//! stops in the midst of a push, at any point. Before U1 there is no task yet, and after it the
//! thief sees one, and exposes it.
//!
//! # Exposure
//!
//! An owner that runs a long task does not come to its deque, and answers no request. Then a thief
//! moves the split itself ([`expose`](Sharing::expose)). Lace cannot do that: it would want a full
//! fence in every pop.
//!
//! ```text
//! exposing thief, one at a time
//!   E1  begin: split = tail - 1
//!   E2  full fence
//!   E3  raise the request for pops               (T1)
//!   E4  heavy fence                              (T2)
//!   E5  which tasks from tail on are visible?    (T3)
//!   E6  end: split = tail + half of these, if it is still as begun
//! ```
//!
//! *A task is taken once.* Take a pop and an exposure. By the fences O2 and E4, either E5 sees O1,
//! or all that the owner loads after O2 sees E1 and E3. In the first case the thief leaves the task
//! alone. In the second O3 sees the request, and the owner [settles](Bounds::settle) before it
//! decides: it finds the exposure begun and undoes that, so that E6 fails, or it finds its end, the
//! new split. (O3 may see an older request, and settle before E1: then it is the first case.) So of
//! the tasks that E5 has found the owner takes none without settling after E1. What the owner
//! pushes meanwhile goes above these, by a push whose U3 sees the request.
//!
//! *A request that the owner takes down.* The owner may take down the request of an exposure that
//! began a moment ago. Two things tell it:
//!
//! - It moves the split by a compare-and-swap that expects the split where the owner knows it to
//!   be. If E1 came before that in the order of the word's changes, and the exposure is still under
//!   way or has moved the split, it fails. If E1 came after, E1 reads what this released, so by E2
//!   the owner's swap of the request happens before E3, and E3 stays.
//! - Where it shares nothing, it fences after the swap, and then settles. If E1 came before the
//!   owner's fence, that is seen then. If it came after, E3 comes after the swap, and stays.
//!
//! *A request that it leaves alone.* An owner that takes tasks back moves its word of the request
//! down with the split ([`follow`](SplitRequest::follow)), by a compare-and-swap that a request
//! makes fail. So E3 is not overwritten, and there is no fence.
//!
//! *Handing over.* The owner releases a task by U1. A thief acquires it by E5 and releases it by
//! E6; a claim acquires that. So a task is handed on as if its owner had shared it.
//!
//! # An owner that fences
//!
//! Where the system has no process-wide barrier, or takes it away, E4 cannot be had. Then the owner
//! makes a full fence at O2, in each pop, and E4 is a full fence of the thief alone. Owner and
//! thief must agree on that, and the owner cannot be asked at each pop, which costs one instruction
//! more. So:
//!
//! ```text
//! owner, in an answer (`attend`, `share`) or at its beginning    thief
//!   F1  know that there is no barrier for good                     X1  fenced = 1? E4 is a full fence
//!   F2  set the request to `ALWAYS`, which stops every pop         X2  else: is or was there a barrier? E4 is a heavy fence
//!   F3  fenced = 1, for ever                                       X3  else nothing is exposed
//! owner's pop from then on
//!   O1, full fence, settle, O4
//! ```
//!
//! *A thief that finds fenced = 1* (X1) has acquired F3. So E5 sees O1 of every pop that came
//! before F3. A pop that comes after it is stopped, since the request is `ALWAYS` or higher from F2
//! on (each of the owner's stores says so, and thieves only raise it), fences after O1, and
//! settles. Of that fence and E4 one comes first: either E5 sees O1, or the pop sees E1, and undoes
//! the exposure or finds its end. That is "Exposure" above, with the bounds in place of the
//! request.
//!
//! *A thief whose heavy fence fails* (a filter that came later) has announced no more than E1 and
//! E3. It ends the exposure with no task, as if E5 had found none. That, or the owner that settles,
//! undoes E1; E3 is one request too many. From then on F1 holds. A request of a thief that knows
//! this brings the owner to F2 at its next push or pop. The exchange that takes the request down
//! acquires it, and then the owner looks at F1 again. Until then such a thief does not expose the
//! owner; a thief that the filter does not concern does (X2).
//!
//! *A program that switches the barrier off* establishes F1 while the system still grants the
//! barrier. So a thief exposes an owner that has not come to F2 by a heavy fence (X2), for which it
//! does not matter which threads know of F1. A full fence is a light one, too, so each of the
//! owner's pops keeps its side of "Exposure", whether it comes before F2 or after. An owner that
//! has not come to F2 loses no task otherwise: nothing but E6 with a task takes one away, and that
//! comes after a heavy fence that succeeded, or after X1.
//!
//! *Pushes do not fence.* Nothing above rests on U2. A thief that is about to sleep may miss the
//! task of a push whose U3 misses T1, in the nanoseconds in which the task is in the owner's store
//! buffer. It must look again some time later.
//!
//! # What an answer costs
//!
//! A line that a thief has read or written must come back to the owner's cache before the owner can
//! write it: up to some hundred nanoseconds, where a push takes one. So the owner does not look
//! before it writes, which would have the line come twice: it expects that all that was
//! shared is claimed, as the thief that asked has seen. And a thief of a [`Split`](crate::Split)
//! waits a little before it asks: see there.

use core::cell::Cell;
use core::marker::PhantomData;

use poach_memory::{Memory, Ordering, Word};

use super::Bounds;

/// The words with which an owner compares its head.
pub(super) trait SplitRequest {
    /// Where a split stands, in the terms of these words.
    type Place: Copy;

    /// What stops every pop, and is no request: the place of an owner that fences.
    const ALWAYS: Self::Place;

    /// Whether a thief has asked. Relaxed: seen late, it is answered late.
    fn is_asked(&self) -> bool;

    /// A thief asks: stops the owner at its next push or pop. What it writes it releases, and only
    /// if it must change, so that the owner's copy of the line stays good.
    fn ask(&self);

    /// The owner asks itself, having nothing to share: stops it at its next push.
    fn ask_again(&self);

    /// A thief stops the owner at its next pop.
    fn stop_pops(&self);

    /// The owner takes the request down, by read-modify-writes that acquire: from now on it is
    /// stopped at `split` alone. Whether a request was up.
    fn take_down(&self, split: Self::Place) -> bool;

    /// The owner has taken tasks back, and is stopped at the new `split` from now on, if nobody has
    /// asked. Takes no request down. Whether that is done; if not, the owner
    /// [attends](Sharing::attend).
    fn follow(&self, split: Self::Place) -> bool;

    /// The owner puts a request off, for which there is something to share.
    fn put_off(&self) {}

    /// Whether the owner has put a request off; from now on it has not.
    fn was_put_off(&self) -> bool {
        false
    }
}

/// What became of an attempt to [expose](super::Stack::expose) tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// It was not begun: there was nothing to expose, or another thief is at it.
    Refused,
    /// It cost a process-wide barrier, and the owner came back meanwhile.
    Vain,
    /// It cost a process-wide barrier, and there is something to [steal](super::Stack::steal) now.
    Done,
}

/// E4.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fence {
    Heavy,
    Full,
}

/// What thieves write.
pub(super) struct Sharing<M: Memory> {
    pub(super) bounds: Bounds<M>,
    /// 1 while a thief exposes. Thieves alone look.
    exposing: M::Word,
    /// 1 if the owner fences each pop. Its word alone.
    fenced: M::Word,
    memory: PhantomData<M>,
}

impl<M: Memory> Sharing<M> {
    /// No task, the next one at `index`.
    pub(super) fn new(index: u32) -> Self {
        let fenced = M::Word::new(M::owners_fence().into());
        Sharing {
            bounds: Bounds::new(index),
            exposing: M::Word::new(0),
            fenced,
            memory: PhantomData,
        }
    }

    /// Whether the owner, which asks, fences each pop: then the request stands at
    /// [`ALWAYS`](SplitRequest::ALWAYS) or is up.
    pub(super) fn owner_fences(&self) -> bool {
        // Relaxed: the owner's own. It is not looked at where there is a barrier.
        M::owners_fence() && self.fenced.load(Ordering::Relaxed) != 0
    }

    /// Whether a thief may expose what the owner keeps, and if so whether by its own fence alone:
    /// X1 to X3.
    fn exposes(&self) -> Option<Fence> {
        // Acquire: pairs with F3.
        if M::owners_fence() && self.fenced.load(Ordering::Acquire) != 0 {
            return Some(Fence::Full);
        }
        M::heavy_may_succeed().then_some(Fence::Heavy)
    }

    /// The owner takes the request down, and answers a thief that asks, if `should_share` says so.
    /// That gets the number of private tasks. `head` is the index above the last task, and no push
    /// or pop is under way. `known` is the split that the owner has last seen, and is brought up to
    /// date. Returns whether it has shared something.
    ///
    /// Lock-free: it starts again only if a thief has exposed tasks, or has asked, meanwhile.
    ///
    /// Figure 4, lines 36 to 40 (`grow_shared`): line 37 is the half, 38 the call of
    /// [`share`](Bounds::share), 39 the store to `known`. The request comes down (line 40) first.
    pub(super) fn attend<A: SplitRequest>(
        &self,
        head: u32,
        known: &Cell<u32>,
        request: &A,
        place: impl Fn(u32) -> A::Place,
        should_share: impl Fn(u32) -> bool,
    ) -> bool {
        // F1.
        let mut fences = M::owners_fence();
        // Both are asked: what was put off is answered with what is up.
        let mut asked = request.was_put_off() | request.is_asked();
        let mut answer = None;
        loop {
            let split = known.get();
            let private = head.wrapping_sub(split);
            // An owner that fences puts nothing off: the place that would stop it always stops it.
            let now = asked && (fences || *answer.get_or_insert_with(|| should_share(private)));
            let half = if now { private.div_ceil(2) } else { 0 };
            let to = split.wrapping_add(half);
            let later = asked && !now && private > 0;
            // Before the tasks are there to be taken: who takes them all and asks again is not
            // overlooked.
            let to_or_later = to.wrapping_add(u32::from(later));
            let overwritten =
                request.take_down(if fences { A::ALWAYS } else { place(to_or_later) });
            if self.fenced_from_here(&mut fences) {
                // The request may come from a thief that knows there is no barrier. It is answered
                // as by an owner that fences.
                asked |= overwritten;
                continue;
            }
            if half > 0 {
                if self.bounds.share(split, split, to) {
                    known.set(to);
                    return true;
                }
                known.set(self.bounds.settle());
            } else {
                // Pairs with E2: of an exposure whose request was taken down just now, E1 is
                // visible after it.
                M::full();
                known.set(self.bounds.settle());
                if known.get() == split {
                    if later {
                        request.put_off();
                        return false;
                    }
                    if asked || !overwritten {
                        break;
                    }
                }
            }
            asked |= overwritten;
        }
        if asked {
            request.ask_again();
        }
        false
    }

    /// The owner shares all its private tasks, which answers a thief that asks; `head` is the index
    /// above its last task, and no push or pop is under way. Returns whether there were any.
    ///
    /// Lock-free: it starts again only if a thief has exposed tasks meanwhile.
    pub(super) fn share<A: SplitRequest>(
        &self,
        head: u32,
        request: &A,
        place: impl Fn(u32) -> A::Place,
    ) -> bool {
        // F1.
        let mut fences = M::owners_fence();
        let mut asked = request.was_put_off();
        loop {
            let split = self.bounds.settle();
            // As in `attend`: before the tasks are there to be taken, and fenced against E2.
            asked |= request.take_down(if fences { A::ALWAYS } else { place(head) });
            if self.fenced_from_here(&mut fences) {
                continue;
            }
            M::full();
            if split != head {
                if self.bounds.share(self.bounds.tail(), split, head) {
                    return true;
                }
            } else if self.bounds.settle() == split {
                // No exposure is under way whose request was taken down.
                break;
            }
        }
        if asked {
            request.ask_again();
        }
        false
    }

    /// F3, of an owner that `fences` and has done F2. Else looks again at F1: whether it has to
    /// begin anew.
    fn fenced_from_here(&self, fences: &mut bool) -> bool {
        if *fences {
            // Release: pairs with the acquire in `exposes`, for the pops that came before.
            self.fenced.store(1, Ordering::Release);
            return false;
        }
        *fences = M::owners_fence();
        *fences
    }

    /// Whether a thief may find something to [expose](Sharing::expose): `private` says how many
    /// tasks from an index on are visible. Exact for a thief that has asked, and passed a heavy
    /// fence since; but `false` while another thief exposes, which will see to it. Of an owner
    /// that fences it is an estimate.
    ///
    /// Any thread; wait-free.
    #[cold]
    pub(super) fn has_private_tasks(&self, private: impl Fn(u32) -> u32) -> bool {
        // Relaxed: the fence that the caller has passed orders it. A thief that has taken the flag
        // down has looked, or does so before it sleeps.
        self.exposes().is_some()
            && self.exposing.load(Ordering::Relaxed) == 0
            && private(self.bounds.tail()) != 0
    }

    /// A thief shares the older half of the private tasks; `private` says how many from an index on
    /// are visible, by loads that acquire.
    ///
    /// Any thread. Never waits for the owner, nor makes it wait.
    #[cold]
    pub(super) fn expose(
        &self,
        request: &impl SplitRequest,
        private: impl Fn(u32) -> u32,
    ) -> Exposure {
        let Some(fence) = self.exposes() else { return Exposure::Refused };
        if private(self.bounds.tail()) == 0 {
            return Exposure::Refused;
        }
        // Acquire: pairs with the release below; exposures come one after the other.
        if self.exposing.swap(1, Ordering::Acquire) != 0 {
            return Exposure::Refused;
        }
        // E1.
        let exposed = self.bounds.begin_exposure().map(|tail| {
            // E2: pairs with the full fence in `attend`.
            M::full();
            // E3.
            request.stop_pops();
            // E4: pairs with U2 and O2.
            let fenced = match fence {
                Fence::Heavy => M::try_heavy(),
                Fence::Full => {
                    M::full();
                    true
                }
            };
            // E5. Without a fence nothing of what is seen is certain, and nothing is taken.
            let tasks = if fenced { private(tail).div_ceil(2) } else { 0 };
            // E6.
            self.bounds.end_exposure(tail, tasks) && tasks > 0
        });
        self.exposing.store(0, Ordering::Release);
        match exposed {
            None => Exposure::Refused,
            Some(false) => Exposure::Vain,
            Some(true) => Exposure::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use poach_memory::Machine;

    use super::*;

    /// A request that is never raised.
    struct Never;

    impl SplitRequest for Never {
        type Place = u32;
        const ALWAYS: u32 = u32::MAX;

        fn is_asked(&self) -> bool {
            false
        }

        fn ask(&self) {}

        fn ask_again(&self) {}

        fn stop_pops(&self) {}

        fn take_down(&self, _: u32) -> bool {
            false
        }

        fn follow(&self, _: u32) -> bool {
            true
        }
    }

    #[test]
    fn an_exposure_that_finds_nothing_any_more_is_in_vain_and_the_next_is_not() {
        let sharing = Sharing::<Machine>::new(0);
        // The owner pops its task between the thief's first look and the second.
        let tasks = Cell::new(1);
        assert_eq!(sharing.expose(&Never, |_| tasks.replace(0)), Exposure::Vain);
        assert!(sharing.has_private_tasks(|_| 1));
        assert_eq!(sharing.expose(&Never, |_| 1), Exposure::Done);
        assert_eq!(sharing.bounds.shared(), 1);
    }
}
