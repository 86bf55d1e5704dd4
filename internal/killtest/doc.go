// Package killtest kills the real program at every point where that could hurt,
// starts it again, and compares what is stored with what was promised.
//
// It holds tests only. The victim is this test's own binary, started again: the
// runtime on a real data folder, with three tools whose effects count
// themselves in a file outside, one for each replay class. The parent is its
// client. It writes down whatever was acknowledged or shown to it, and after
// the restart goes on as a program would. Then the log has to agree with the
// witness: nothing acknowledged is missing, nothing shown was taken back, no
// once-only effect happened twice, and the answer is the same.
//
// The model is in the victim, or behind a local server in the parent that speaks
// one of the three wires. That server gives thoughts away, signed or encrypted,
// and looks at every request as strictly as a provider: calls and results fit,
// thoughts come back byte for byte with the answers that they belong to, and
// after any kill it is told the same as if there had been none.
//
// Commands run in a yard, which knows from outside how many there were. They
// outlive the victim, and the next one has to find each with its status and every
// byte of its output, tell the model of its end once, and leave no process behind.
//
// In a small window contexts are compacted, before a turn, in the middle of one, beside
// one, by hand and because a provider refuses. The model then knows what it has done only
// from what is left of it, so that whatever a kill loses is done twice, and counted.
//
// A write of the store has three points. Before: nothing of it is stored.
// Committed: it is stored, and nobody knows. After: everything that it caused
// has reached the client. The victim kills itself at the first two, the parent
// kills it at the third; nobody waits for a clock.
//
// ABIDE_SOAK=10m makes the random tests go on for so long; ABIDE_SEED repeats
// one of their runs.
package killtest
