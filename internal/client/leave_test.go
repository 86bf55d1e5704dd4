package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/jsonrpc"
)

func TestAQuestionThatArrivesWhileTheClientLeavesGetsNoAnswer(t *testing.T) {
	for range 2000 {
		runtime, stop, c := played(t, pong, client.Options{})
		if _, err := c.Ping(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		left := make(chan struct{})
		go func() { defer close(left); c.Close() }()
		err := runtime.Call(context.Background(), api.UserInput, api.UserInputParams{}, nil)
		<-left
		stop()
		if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
			t.Fatalf("it was answered: %v", answer)
		}
	}
}
