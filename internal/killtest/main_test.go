package killtest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or the victim if the environment asks for one.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(instructionsVariable); ok {
		os.Exit(victim(text))
	}
	goleak.VerifyTestMain(m)
}
