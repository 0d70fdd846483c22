/*
 * FF-THE on TSO[S]: Cilk's THE queue without the owner's fence, as Morrison and Afek give it in Figures 2a, 2b
 * and 3, line numbers theirs; and beside that what an owner that leaves means, which the paper does not treat.
 *
 * Written from the paper. It shares nothing with crates/check.
 *
 *   DELTA        a thief steals only more than this far from the owner; 0 with OWNER_FENCE is Figure 2b
 *   TASKS        tasks in the queue to begin with
 *   POPS         how many the owner takes before it leaves; more than TASKS: until none is left
 *   X            stores that the client makes between two takes, each to an address of its own
 *   THIEVES      how many thieves
 *   STEALS       how often each tries
 *   OWNER_FENCE  1: take() has the fence of Figure 2a, line 11
 *   THIEF_FENCE  0: steal() lacks the fence of line 60
 *   LOCKED       0: thieves do not exclude each other
 *   LEAVES       1: the owner says when it has left, and a thief in doubt looks; 2: it then looks at the tail
 *                once more
 */

#define OWNER  0
#define THIEF(n) (1 + (n))

#define TAIL   0
#define HEAD   1
#define LOCK   2
#define CLOSED 3
#define CLIENT 4

#define PROCESSORS (1 + THIEVES)
#define WORDS (CLIENT + X + 1)
#include "tso.pml"

/* Indices begin at 1, so that the owner's tail may stand below the first. */
#define FIRST 1
#define END (FIRST + TASKS)

byte taken[END];
#define TAKE(task) taken[task]++; assert(taken[task] == 1)

proctype owner()
{
	byte t = END, h, count, store;
	do
	:: count == POPS -> break
	:: else ->
		count++;
		t--;
		STORE(OWNER, TAIL, t);
#if OWNER_FENCE
		FENCE(OWNER);
#endif
		h = memory[HEAD];                 /* the owner never stores to it */
		if
		:: t >= h -> TAKE(t)
		:: else ->                        /* lines 3-9 of Figure 2b */
			TAKE_LOCK(OWNER, LOCK);
			h = memory[HEAD];
			if
			:: t >= h -> FREE_LOCK(OWNER, LOCK); TAKE(t)
			:: else ->
				t++;
				STORE(OWNER, TAIL, t);
				FREE_LOCK(OWNER, LOCK);
				break
			fi
		fi;
		h = 0;
		store = 0;
		do
		:: store < X -> STORE(OWNER, CLIENT + store, 0); store++
		:: else -> store = 0; break
		od
	od;
#if LEAVES
	STORE(OWNER, CLOSED, 1);
#endif
	DRAINED(OWNER)
}

/* A thief's stores are all followed by a fence or, at its next steal, the lock, before it loads: past them it
 * sees none of its own, but where THIEF_FENCE is left out, and then they are not to what it loads. */
proctype thief(byte me)
{
	byte h, t, tries;
	do
	:: tries == STEALS -> break
	:: else ->
		tries++;
#if LOCKED
		TAKE_LOCK(me, LOCK);              /* line 57 */
#endif
		h = memory[HEAD];
		STORE(me, HEAD, h + 1);
#if THIEF_FENCE
		FENCE(me);
#endif
		t = memory[TAIL];
		if
		:: t > h + DELTA -> goto steal    /* line 61 */
		:: else
		fi;
#if LEAVES
		if
		:: memory[CLOSED] == 1 ->
#if LEAVES == 2
			t = memory[TAIL];
#endif
			if :: t > h -> goto steal :: else fi
		:: else
		fi;
#endif
		STORE(me, HEAD, h);               /* line 64 */
		goto out;
steal:
		TAKE(h);
out:
#if LOCKED
		FREE_LOCK(me, LOCK);
#endif
		h = 0; t = 0
	od;
	DRAINED(me)
}

/* When all have ended: what is between head and tail has been taken by nobody, all else once. */
init
{
	byte n;
	atomic {
		memory[TAIL] = END; memory[HEAD] = FIRST;
		do
		:: n < PROCESSORS -> run drain(n); n++
		:: else -> break
		od;
		run owner();
		n = 0;
		do
		:: n < THIEVES -> run thief(THIEF(n)); n++
		:: else -> break
		od;
		n = FIRST
	}
	(_nr_pr == 1 + PROCESSORS) ->
	d_step {
		do
		:: n < END ->
			if
			:: n >= memory[HEAD] && n < memory[TAIL] -> assert(taken[n] == 0)
			:: else -> assert(taken[n] == 1)
			fi;
			n++
		:: else -> break
		od
	}
}
