//! Work-stealing deques: an owner pushes and pops at one end, thieves steal at the other.
