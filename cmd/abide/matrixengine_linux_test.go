package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/abide-run/abide/internal/cli"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// The variables of abide-dies: the point and the number of the write at which it dies, and
// a file with the number of writes so far.
const (
	diesVariable   = "ABIDE_TEST_DIES"
	writesVariable = "ABIDE_TEST_WRITES"
)

func init() {
	programs["abide-dies"] = func() { os.Exit(cli.Process(cli.Options{Retries: retries, Wrap: newDyingStore})) }
}

// A dyingStore is a store whose process dies at a write.
type dyingStore struct {
	eventlog.Store
	dies   string // "before 3" or "committed 3"
	writes string
	n      atomic.Int64
}

func newDyingStore(s eventlog.Store) eventlog.Store {
	return &dyingStore{Store: s, dies: os.Getenv(diesVariable), writes: os.Getenv(writesVariable)}
}

func (d *dyingStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (end eventlog.End, err error) {
	err = d.write(func() error {
		end, err = d.Store.Append(ctx, id, batch)
		return err
	})
	return end, err
}

func (d *dyingStore) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	return d.write(func() error { return d.Store.PutSecrets(ctx, id, secrets...) })
}

// write makes one write, or dies before or after it.
func (d *dyingStore) write(do func() error) error {
	n := d.n.Add(1)
	if err := os.WriteFile(d.writes, []byte(strconv.FormatInt(n, 10)), 0o600); err != nil {
		return err
	}
	d.dieAt("before", n)
	err := do()
	d.dieAt("committed", n)
	return err
}

// dieAt kills this process with SIGKILL if it has to die here.
func (d *dyingStore) dieAt(point string, n int64) {
	if d.dies == fmt.Sprintf("%s %d", point, n) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// readWrites returns how many writes an engine has made.
func readWrites(path string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}
