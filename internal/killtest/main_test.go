package killtest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or is the victim of one.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(ordersVariable); ok {
		os.Exit(victim(text))
	}
	goleak.VerifyTestMain(m)
}
