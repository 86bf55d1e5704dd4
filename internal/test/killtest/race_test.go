//go:build race

package killtest

const raceEnabled = true
