/*
 * The machine of Morrison and Afek, "Fence-Free Work Stealing on Bounded TSO Processors", sections 2 and
 * 7.3: each processor's stores wait in a FIFO buffer of S entries, and with EGRESS in one entry more behind
 * it, which takes in its neighbour to the same address. A locked instruction waits until the processor's own
 * buffer and entry are empty, and so does a fence. Loads see the processor's own stores first; where a model
 * reads the memory past them, it says why there can be none.
 *
 *   S           entries of a store buffer, at least 1
 *   EGRESS      1: one entry more
 *   PROCESSORS  how many there are
 *   WORDS       how many words the memory has
 */

byte memory[WORDS];
chan buffer[PROCESSORS] = [S] of { byte, byte };  /* stores on their way: address, value */
bool slot_full[PROCESSORS];                       /* the egress entry */
byte slot_address[PROCESSORS], slot_value[PROCESSORS];

#define DRAINED(p) (empty(buffer[p]) && !slot_full[p])

/* Waits while the buffer is full. */
#define STORE(p, address, value) buffer[p]!address,value

#define FENCE(p) DRAINED(p)

/* A lock is a word: 0 is free. It is taken by a locked instruction and given back by a plain store. */
#define TAKE_LOCK(p, lock) atomic { DRAINED(p) && memory[lock] == 0 -> memory[lock] = 1 }
#define FREE_LOCK(p, lock) STORE(p, lock, 0)

/* The way of processor p's stores to memory. */
proctype drain(byte p)
{
	byte address, value;
end:
	do
#if EGRESS
	:: atomic { !slot_full[p] && nempty(buffer[p]) ->
		buffer[p]?address,value;
		slot_address[p] = address; slot_value[p] = value; slot_full[p] = true;
		address = 0; value = 0 }
	:: atomic { slot_full[p] && buffer[p]?[eval(slot_address[p]), value] ->
		buffer[p]?eval(slot_address[p]),value;
		slot_value[p] = value; value = 0 }
	:: atomic { slot_full[p] ->
		memory[slot_address[p]] = slot_value[p];
		slot_address[p] = 0; slot_value[p] = 0; slot_full[p] = false }
#else
	:: atomic { buffer[p]?address,value -> memory[address] = value; address = 0; value = 0 }
#endif
	od
}
