package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func TestAPlainTurnTakesAtMostFourKilobytesOnDisk(t *testing.T) {
	const turns = 600
	for _, sessions := range []int{1, 10, 60} {
		t.Run(fmt.Sprint(sessions, " sessions"), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "abide.db")
			s, err := Open(t.Context(), path, Options{Sync: eventlog.Normal})
			if err != nil {
				t.Fatal(err)
			}
			ends := make([]eventlog.End, sessions)
			payload := 0
			for i := range turns {
				id := event.SessionID(fmt.Sprintf("%036d", i%sessions))
				if ends[i%sessions], err = turn(t.Context(), s, id, ends[i%sessions]); err != nil {
					t.Fatal(err)
				}
			}
			for e, err := range s.Read(t.Context(), event.SessionID(fmt.Sprintf("%036d", 0)), 0) {
				if err != nil {
					t.Fatal(err)
				}
				payload += len(e.Bytes)
			}
			if err := s.Close(); err != nil { // folds the write-ahead log in
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes per turn of %d bytes", info.Size()/turns, payload*sessions/turns)
			if info.Size() > 4096*turns {
				t.Errorf("%d turns take %d bytes, %d each", turns, info.Size(), info.Size()/turns)
			}
		})
	}
}
