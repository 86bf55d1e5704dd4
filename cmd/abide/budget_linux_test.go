package main

import "testing"

// TestABudgetIsAskedAboutAtATerminal: abide run and the chat ask before the request that would
// exceed the budget, what is no answer is asked again, and exit codes tell.
func TestABudgetIsAskedAboutAtATerminal(t *testing.T) {
	const question = `the budget: this session and its agents have used 0 of 0\s+\S*\s*tokens \(session_tokens\)\. Go on\? That raises session_tokens to \d+ tokens\.\s+`
	x := startTmux(t, t.TempDir(), 100, 30)
	run := func(says string) {
		x.run("clear-history")
		x.keys("clear; abide run --max-tokens-total 0 'Reply with exactly: "+says+"'", "Enter")
		x.sees(question + `\[y\]es, go on; \[n\]o, end the turn:\s*$`)
	}
	run("FIRST")
	x.keys("perhaps", "Enter")
	x.sees(`answer yes to go on, or no to end the turn.*` + question + `\[y\]es, go on; \[n\]o, end the turn:\s*$`)
	x.keys("y", "Enter")
	x.sees(`FIRST\n+ready>\s*$`)
	run("SECOND")
	x.keys("n", "Enter")
	x.sees(`it reached its budget and the answer was not to go on.*ready>\s*$`)
	x.keys("echo code $?", "Enter")
	x.sees(`code 6\n`)
	run("THIRD")
	x.keys("C-c")
	x.sees(`stopped the turn.*ready>\s*$`)
	x.keys("echo code $?", "Enter")
	x.sees(`code 130\n`)

	x.run("clear-history")
	x.keys("clear; abide --max-tokens-total 0 --model offline", "Enter")
	x.sees(`› ask`)
	x.keys("Reply with exactly: FOURTH", "Enter")
	x.sees(question + `\[y\]es, go on; \[n\]o, end the turn; \[Tab\] later`)
	x.keys("y")
	x.sees(`\nFOURTH *\n+› `)
	x.keys("C-d")
	x.sees(`to come back: abide.*ready>\s*$`)
}
