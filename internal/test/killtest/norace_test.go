//go:build !race

package killtest

const raceEnabled = false
