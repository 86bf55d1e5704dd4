//go:build race

package main

// raceEnabled says that the race detector is on, which needs more memory.
const raceEnabled = true
