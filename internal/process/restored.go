package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// RecordLost records in a copy of a folder of processes that every process that was not
// gone is lost. Its keeper, if it still runs, belongs to the folder that was copied: a
// manager of the copy must neither wait for it nor signal its processes. The folder need
// not exist.
func RecordLost(dir, reason string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isID(e.Name()) {
			continue
		}
		if err := recordLost(filepath.Join(dir, e.Name()), reason); err != nil {
			return fmt.Errorf("process %s: %w", e.Name(), err)
		}
	}
	return nil
}

func recordLost(dir, reason string) error {
	p := &proc{dir: dir}
	text, err := os.ReadFile(p.path(keeper.StateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a manager finds the process damaged, and signals nothing
	}
	if err != nil {
		return err
	}
	s := status{state: Starting}
	record.Each(text, s.apply)
	if s.gone {
		return nil
	}
	if !s.lost {
		if err := p.append(record.New(keeper.Lost).With("reason", reason)); err != nil {
			return err
		}
	}
	return p.append(record.New(keeper.Ended))
}

// OwnerIn returns the owner of the process in a folder, and false if it cannot be read
// there.
func OwnerIn(dir string) (Owner, bool) {
	start, err := readStartInfo(dir)
	return start.spec.Owner, err == nil
}
