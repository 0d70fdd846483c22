/*
 * Requests and exposure of the split deque on TSO[S]: how a thief asks an owner to share, and how it helps itself to
 * private tasks of an owner that does not come back. The deque is Lace's (van Dijk and van de Pol, "Lace: Non-blocking
 * Split Deque for Work-Stealing", section 3); requests and exposure are ours, written from the protocol that
 * crates/deque/src/papers/split/sharing.rs states in its opening comment, steps U1 to U3, O1 to O4, T1 to T3 and E1 to E6.
 *
 * It shares nothing with crates/check.
 *
 *   TASKS        tasks that the owner has pushed to begin with, all private
 *   PUSHES       how many it pushes after that, first of all
 *   POPS         how many it pops then; after that it is at a long task, and never comes back
 *   THIEVES      how many thieves
 *   ROUNDS       how often each looks for a task, at most
 *   EXPOSES      0: a thief only asks, as where there is no process-wide barrier
 *   HEAVY        0: a thief lacks the process-wide barrier (T2, E4)
 *   SETTLES      0: the owner, stopped by a request, does not settle before it takes (O4)
 *   SWAPS        0: the owner takes the request down by a plain store, with no fence before it looks again
 *   DOWN_FIRST   0: the owner shares first and takes the request down second
 *
 * E2, and the owner's full fence behind the swap, are left out: both stand behind locked instructions, which are fences
 * on this machine.
 */

#define OWNER    0
#define THIEF(n) (1 + (n))

#define HEAD  0
#define REQUEST 1

#define PROCESSORS (1 + THIEVES)
#define WORDS 2
#include "tso.pml"

#define FIRST  1
#define END    (FIRST + TASKS + PUSHES)
#define RAISED 255

/* The one word: changed by locked instructions alone. Begun: split = tail - 1. */
byte tail = FIRST, split = FIRST;
bool exposing;
#define SHARED (split > tail)

byte taken[END];
#define TAKE(task) taken[task]++; assert(taken[task] == 1)

bool away;                                /* the owner is at its long task */
byte shares;                              /* an owner that shares wakes who sleeps, each time */
byte resting;                             /* thieves that sleep or have ended */

/* REQUEST is the one word that the owner stores to, when it asks itself, and loads. Until it takes the request down it sees
 * that store, and thieves store the same. */
bool asked_again;
#define SEES_REQUEST(head) (asked_again || memory[REQUEST] == RAISED || head <= memory[REQUEST])

/* Moves the split down to the tail if an exposure is under way. */
inline settle(at)
{
	atomic { DRAINED(OWNER) || split >= tail ->
		if
		:: split < tail -> split = tail
		:: else
		fi;
		at = split }
}

/* `head` is the index above the owner's last task. */
inline attend(head)
{
	asked = asked_again || memory[REQUEST] == RAISED;
	do
	:: true ->
		settle(at);
		private = head - at;
		half = (asked -> (private + 1) / 2 : 0);
#if !DOWN_FIRST
		if
		:: half > 0 ->
			atomic { DRAINED(OWNER) -> won = (split == at);
				if :: won -> split = at + half; shares++ :: else fi }
		:: else -> won = false
		fi;
#endif
		/* A swap, hence behind all of the owner's stores. */
#if SWAPS
		atomic { DRAINED(OWNER) ->
			overwritten = (memory[REQUEST] == RAISED); memory[REQUEST] = at + half; asked_again = false }
#else
		overwritten = (asked_again || memory[REQUEST] == RAISED);
		STORE(OWNER, REQUEST, at + half); asked_again = false;
#endif
		if
		:: half > 0 ->
#if DOWN_FIRST
			atomic { DRAINED(OWNER) -> won = (split == at);
				if :: won -> split = at + half; shares++ :: else fi };
#endif
			if :: won -> asked = false; break :: else fi
		:: else ->
			settle(other);
			if
			:: other == at && (asked || !overwritten) -> break
			:: else
			fi
		fi;
		asked = asked || overwritten
	od;
	if
	:: asked -> asked_again = true; STORE(OWNER, REQUEST, RAISED)
	:: else
	fi;
	asked = false; overwritten = false; won = false; at = 0; other = 0; private = 0; half = 0
}

proctype owner()
{
	byte head = FIRST + TASKS, count, at, other, private, half;
	bool asked, overwritten, won;
	do
	:: count == PUSHES -> break
	:: else ->
		count++;
		head++;
		STORE(OWNER, HEAD, head);         /* U1 */
		if
		:: SEES_REQUEST(head) -> attend(head)   /* U3 */
		:: else
		fi
	od;
	count = 0;
	do
	:: count == POPS -> break
	:: else ->
		count++;
		head--;
		STORE(OWNER, HEAD, head);         /* O1 */
		if
		:: SEES_REQUEST(head + 1) ->        /* O3 */
#if SETTLES
			settle(at);
			if
			:: head < at ->
				/* Takes the younger half of the shared tasks back, at least one. */
				atomic { DRAINED(OWNER) -> won = SHARED;
					if :: won -> split = tail + (split - tail) / 2 :: else fi };
				if
				:: !won -> head++; STORE(OWNER, HEAD, head); break
				:: else
				fi
			:: else
			fi;
			won = false;
#endif
			TAKE(head);
			attend(head)
		:: else -> TAKE(head)             /* O4 */
		fi
	od;
	DRAINED(OWNER);
	away = true
}

proctype thief(byte me)
{
	byte from, to, round, seen;
	bool won;
	do
	:: round == ROUNDS -> break
	:: else ->
		round++;
		/* Steals one, if there is one. */
		atomic { DRAINED(me) -> won = SHARED; from = tail; seen = shares;
			if :: won -> tail++ :: else fi };
		if
		:: won -> TAKE(from); from = 0; won = false
		:: else ->
			STORE(me, REQUEST, RAISED);     /* T1 */
#if HEAVY
			atomic { DRAINED(me) && DRAINED(OWNER) -> skip };   /* T2 */
#else
			FENCE(me);
#endif
#if EXPOSES
			if
			:: !exposing && memory[HEAD] > tail ->   /* T3 */
				atomic { DRAINED(me) -> won = !exposing; exposing = true };
				if
				:: won ->
					atomic { won = (tail == split); from = tail;
						if :: won -> split = tail - 1 :: else fi };     /* E1 */
					if
					:: won ->
						STORE(me, REQUEST, RAISED); /* E3 */
#if HEAVY
						atomic { DRAINED(me) && DRAINED(OWNER) -> skip };   /* E4 */
#endif
						to = memory[HEAD];        /* E5 */
						to = (to > from -> from + (to - from + 1) / 2 : from);
						atomic { DRAINED(me) ->   /* E6 */
							if
							:: tail == from && split == from - 1 -> split = to
							:: else
							fi }
					:: else
					fi;
					exposing = false
				:: else
				fi
			:: else ->
#endif
				/* It sleeps until something is shared, or was since it came to steal, or for ever. */
				resting++;
				if
				:: SHARED || shares != seen -> resting--
				:: atomic { away && resting == THIEVES && !SHARED && shares == seen ->
					/* The request is up, and with exposure nothing is left; but of several thieves one
					 * may have come to its last round in the midst of that. */
					assert(THIEVES > 1 || memory[REQUEST] == RAISED);
#if EXPOSES && THIEVES == 1
					assert(memory[HEAD] <= tail);
#endif
					won = true }
				fi;
				if :: won -> break :: else fi
#if EXPOSES
			fi
#endif
			;
			from = 0; to = 0; won = false
		fi
	od;
	if :: !won -> resting++ :: else fi
}

/* When all have ended: what is from the tail to the head has been taken by nobody, all else once. */
init
{
	byte n;
	atomic {
		memory[HEAD] = FIRST + TASKS; memory[REQUEST] = FIRST;
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
			:: n >= tail && n < memory[HEAD] -> assert(taken[n] == 0)
			:: else -> assert(taken[n] == 1)
			fi;
			n++
		:: else -> break
		od
	}
}
