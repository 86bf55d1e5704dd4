// Package killtest kills the real program at every point where that could hurt,
// starts it again, and compares what is stored with what was promised.
//
// It holds tests only. The victim is the process that is killed: this test's own
// binary, started again as the runtime on a real data folder. It has three tools,
// one for each replay class, which record every run in a file outside the data
// folder. The parent, the test itself, is the client of the victim. Its recorder
// keeps whatever was acknowledged or shown to it, and after a restart the client
// continues as a program would. Then the log has to agree with the recorder:
// nothing acknowledged is missing, nothing shown was withdrawn, no once-only effect
// happened twice, and the answer is the same.
//
// The model is in the victim, or behind a local server in the parent that speaks
// one of the three wires. That server sends reasoning, signed or encrypted, and
// checks every request as strictly as a provider: calls match results, reasoning
// comes back byte for byte with the answers that it belongs to, and after any kill
// the server gets the same history as without a kill.
//
// Commands run in a directory that counts their runs without the runtime. They
// outlive the victim, and the next victim has to find each of them with its status
// and every byte of its output, notify the model of its end once, and leave no
// process behind.
//
// With a small window, contexts are compacted before a turn, in the middle of one,
// in the background, by hand, and because a provider refuses a request. The model
// then knows only from the compacted context what it has done, so that whatever a
// kill loses is done twice, and counted.
//
// A write of the store has three points. Before: nothing of the write is stored.
// Committed: it is stored, and no client knows. After: everything that it caused
// has reached the client. The victim kills itself at the first two points, the
// parent kills it at the third; no test waits for a clock.
//
// What is done in several files has steps: a start of a command, its undoing after a
// crash, and a deletion with everything that belongs to the session. The victim kills
// itself between any two of them. After each kill the auditor, package audit, looks at
// what is stored.
//
// With the race detector on, victims have it in the random tests, and where a scenario is
// played without a kill. The others, and the parent, are built without it.
//
// ABIDE_SOAK=10m runs the random tests for ten minutes, each time with the next seed;
// ABIDE_SEED is the first, and ABIDE_SEED=random a new one.
package killtest
