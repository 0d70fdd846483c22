/*
 * THEP on TSO[S], as Morrison and Afek give it in Figure 5, line numbers theirs; beside that what a thief does when
 * the owner has left, which the paper does not treat.
 *
 * Written from the paper. It shares nothing with crates/check.
 *
 *   DELTA        a thief this close to the owner waits for the echo; TASKS: always
 *   TASKS        tasks in the queue to begin with
 *   POPS         how many the owner takes before it leaves; more than TASKS: until none is left
 *   X            stores that the client makes between two takes, each to an address of its own
 *   STEALS       how often the thief tries
 *   BEATS        heartbeats are counted modulo this
 *   THIEF_FENCE  0: steal() lacks the fence of line 111
 *   ECHO_FIRST   1: take() writes the echo before it stores the tail
 *   CLEARED      0: an owner that has met a thief leaves the echo as it is (line 95)
 *   ENDS         0: a thief that waits does not look whether the queue has become empty (line 114)
 *   LEAVES       0: a thief that waits does not look whether the owner has left
 */

#define OWNER  0
#define THIEF  1

#define TAIL   0
#define HEAD   1                          /* heartbeat and index */
#define LOCK   2
#define ECHO   3
#define CLOSED 4
#define CLIENT 5

#define PROCESSORS 2
#define WORDS (CLIENT + X + 1)
#include "tso.pml"

/* Indices begin at 1, so that the owner's tail may stand below the first. */
#define FIRST 1
#define END (FIRST + TASKS)

#define PACK(s, h) ((s) * 16 + (h))
#define BEAT(word) ((word) / 16)
#define INDEX(word) ((word) % 16)
#define SILENT 255

byte taken[END];
#define TAKE(task) taken[task]++; assert(taken[task] == 1)

proctype owner()
{
	byte t = END, word, count, store;
	do
	:: count == POPS -> break
	:: else ->
		count++;
		t--;
#if ECHO_FIRST
		word = memory[HEAD];
		STORE(OWNER, ECHO, BEAT(word));
		STORE(OWNER, TAIL, t);
#else
		STORE(OWNER, TAIL, t);            /* line 90 */
		word = memory[HEAD];              /* line 91; the owner never stores to it */
#endif
		if
		:: t >= INDEX(word) ->
#if !ECHO_FIRST
			STORE(OWNER, ECHO, BEAT(word));   /* line 103 */
#endif
			TAKE(t)
		:: else ->
			TAKE_LOCK(OWNER, LOCK);
#if CLEARED
			STORE(OWNER, ECHO, SILENT);
#endif
			word = memory[HEAD];
			if
			:: t >= INDEX(word) -> FREE_LOCK(OWNER, LOCK); TAKE(t)
			:: else ->
				t++;
				STORE(OWNER, TAIL, t);
				FREE_LOCK(OWNER, LOCK);
				break
			fi
		fi;
		word = 0;
		store = 0;
		do
		:: store < X -> STORE(OWNER, CLIENT + store, 0); store++
		:: else -> store = 0; break
		od
	od;
	STORE(OWNER, CLOSED, 1);
	DRAINED(OWNER)
}

/* The thief's stores are all followed by a fence or, at its next steal, the lock, before it loads: past them it sees
 * none of its own, but where THIEF_FENCE is left out, and then they are not to what it loads. */
proctype thief()
{
	byte h, s, t, tries;
	do
	:: tries == STEALS -> break
	:: else ->
		tries++;
		TAKE_LOCK(THIEF, LOCK);           /* line 108 */
		h = INDEX(memory[HEAD]);
		s = (BEAT(memory[HEAD]) + 1) % BEATS;
		STORE(THIEF, HEAD, PACK(s, h + 1));
#if THIEF_FENCE
		FENCE(THIEF);
#endif
		t = memory[TAIL];
		if
		:: t > h + DELTA
		:: else ->                        /* lines 113-117 */
			if
			:: memory[ECHO] == s
#if ENDS
			:: memory[TAIL] < h + 1
#endif
#if LEAVES
			:: memory[CLOSED] == 1
#endif
			fi;
			t = memory[TAIL]
		fi;
		if
		:: t >= h + 1 -> TAKE(h)          /* lines 118 and 125 */
		:: else -> STORE(THIEF, HEAD, PACK(s, h))
		fi;
		FREE_LOCK(THIEF, LOCK);
		h = 0; s = 0; t = 0
	od;
	DRAINED(THIEF)
}

/* When all have ended: what is between head and tail has been taken by nobody, all else once. */
init
{
	byte n;
	atomic {
		memory[TAIL] = END; memory[HEAD] = PACK(0, FIRST); memory[ECHO] = SILENT;
		run drain(OWNER); run drain(THIEF); run owner(); run thief();
		n = FIRST
	}
	(_nr_pr == 1 + PROCESSORS) ->
	d_step {
		do
		:: n < END ->
			if
			:: n >= INDEX(memory[HEAD]) && n < memory[TAIL] -> assert(taken[n] == 0)
			:: else -> assert(taken[n] == 1)
			fi;
			n++
		:: else -> break
		od
	}
}
