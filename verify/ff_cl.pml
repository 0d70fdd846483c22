/*
 * FF-CL on TSO[S]: Chase and Lev's deque without the owner's fence, as Morrison and Afek give it in
 * "Fence-Free Work Stealing on Bounded TSO Processors", Figures 2c and 4, on the machine of their
 * section 2 with the egress slot of their section 7.3.
 *
 * Written from the paper, to be a second opinion: it shares nothing with crates/check, neither the
 * source of the queue nor the machine. `cargo xtask spin` asks both the same questions.
 *
 *   S       entries of the owner's store buffer, at least 1
 *   EGRESS  1: one entry more behind the buffer, which takes in its neighbour to the same address
 *   X       stores that the client makes between two takes, each to an address of its own
 *   DELTA   a thief this close to the owner aborts; 0: it never does
 *   TASKS   tasks in the queue to begin with; the owner takes until none is left
 *   STEALS  how often the thief tries
 *
 * The thief stores to nothing but head, and to that by compare-and-swap alone: it needs no buffer.
 */

#define TAIL   0
#define CLIENT 1

byte head = 0;                        /* the thief's word */
byte memory[1 + X + 1];               /* tail, and the client's words (one to spare, for X = 0) */
chan buffer = [S] of { byte, byte };  /* the owner's stores on their way: address, value */
bool slot_full = false;               /* the egress slot */
byte slot_address, slot_value;

byte taken[TASKS];                    /* how often each task was taken */

#define DRAINED (empty(buffer) && !slot_full)
#define TAKE(task) taken[task]++; assert(taken[task] == 1)

/* The way of a store to memory. */
proctype drain()
{
	byte address, value;
end:
	do
#if EGRESS
	:: atomic { !slot_full && nempty(buffer) ->
		buffer?slot_address,slot_value; slot_full = true }
	:: atomic { slot_full && buffer?[eval(slot_address), value] ->
		buffer?eval(slot_address),slot_value }
	:: atomic { slot_full ->
		memory[slot_address] = slot_value; slot_full = false }
#else
	:: atomic { buffer?address,value -> memory[address] = value }
#endif
	od
}

proctype owner()
{
	byte tail = TASKS, h, store;
	bool won;
	do
	:: tail == 0 -> break            /* below the first index there is nothing to compete for */
	:: else ->
		tail--;
		buffer!TAIL,tail;            /* waits while the buffer is full */
		h = head;                    /* no fence: the store may still be in the buffer */
		if
		:: tail > h -> TAKE(tail)
		:: else ->
			won = false;
			if
			:: tail == h ->
				/* A compare-and-swap waits for the buffer. */
				atomic { DRAINED -> if :: head == h -> head++; won = true :: else fi }
			:: else
			fi;
			if :: won -> TAKE(tail) :: else fi;
			tail++;
			buffer!TAIL,tail;
			break
		fi;
		store = 0;
		do
		:: store < X -> buffer!(CLIENT + store),0; store++
		:: else -> break
		od
	od;
	DRAINED
}

proctype thief()
{
	byte h, t, tries = 0;
	bool won;
	do
	:: tries == STEALS -> break
	:: else ->
		tries++;
		h = head;
		t = memory[TAIL];
		if
		:: t <= h                     /* empty */
		:: t > h && t - h <= DELTA    /* abort */
		:: else ->
			won = false;
			atomic { if :: head == h -> head++; won = true :: else fi };
			if :: won -> TAKE(h) :: else fi
		fi
	od
}

/* Starts them, and when both have ended counts the tasks: each was taken. */
init
{
	byte task = 0;
	atomic {
		memory[TAIL] = TASKS;
		run drain(); run owner(); run thief()
	}
	(_nr_pr == 2) ->
	d_step {
		do
		:: task < TASKS -> assert(taken[task] == 1); task++
		:: else -> break
		od
	}
}
