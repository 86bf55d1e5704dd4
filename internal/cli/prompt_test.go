package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever leaves stdin open is told what the program waits for, and what arrives later still
// counts.
func TestAnOpenStdinIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, feed := io.Pipe()
		var said bytes.Buffer
		a := &app{in: in, err: &printer{w: &said}}
		time.AfterFunc(stdinPatience+time.Second, func() {
			synctest.Wait()
			if !bytes.Contains(said.Bytes(), []byte("reading stdin to its end")) {
				t.Errorf("said %q", &said)
			}
			io.WriteString(feed, "late\n\n")
			feed.Close()
		})
		got, err := a.prompt(t.Context(), &runFlags{}, []string{"explain"})
		if want := "explain\n\n<stdin>\nlate\n</stdin>"; got != want || err != nil {
			t.Errorf("prompt %q, %v; want %q", got, err, want)
		}
	})
}

func TestReadingStdinCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, feed := io.Pipe()
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		time.AfterFunc(time.Hour, func() { cancel(stopped) })
		a := &app{in: in, err: &printer{w: io.Discard}}
		if _, err := a.prompt(ctx, &runFlags{}, []string{"explain"}); !errors.Is(err, stopped) {
			t.Errorf("error %v", err)
		}
		feed.Close() // ends the goroutine that reads
	})
}
