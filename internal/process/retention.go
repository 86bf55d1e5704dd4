package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/outlog"
	"github.com/abide-run/abide/internal/process/record"
)

// checkCapsLocked refuses a start that would exceed the caps of its owner. If only
// disk is short, it drops output that was seen, the oldest first.
func (m *Manager) checkCapsLocked(spec Spec) error {
	running, disk, reserved := int64(0), int64(0), int64(0)
	var spare []*proc
	for _, p := range m.procs {
		if p.start.spec.Owner != spec.Owner {
			continue
		}
		s, _ := p.now()
		switch {
		case !s.gone:
			running++
			disk += p.start.spec.Quota
			reserved += p.start.spec.Quota
		case !s.dropped:
			disk += p.size()
			if s.seen {
				spare = append(spare, p)
			}
		}
	}
	if running >= int64(m.opts.MaxRunning) {
		return &CapError{What: capProcesses, Has: running, Cap: int64(m.opts.MaxRunning)}
	}
	slices.SortFunc(spare, func(a, b *proc) int { return a.start.time.Compare(b.start.time) })
	for _, p := range spare {
		if disk+spec.Quota <= m.opts.MaxDisk {
			break
		}
		size := p.size()
		if p.drop() == nil {
			disk -= size
		}
	}
	if disk+spec.Quota > m.opts.MaxDisk {
		return &CapError{What: capDisk, Has: disk, Reserved: reserved, Wants: spec.Quota, Cap: m.opts.MaxDisk}
	}
	return nil
}

// size returns the number of bytes on disk of the output of a process that is gone.
func (p *proc) size() int64 {
	s, _ := p.now()
	if s.totals == nil {
		return outlog.Disk(p.dir)
	}
	return s.kept
}

// MarkSeen records that the end of a process was reported: from now on its output
// may be removed.
func (m *Manager) MarkSeen(owner Owner, id ID) error {
	p, err := m.find(owner, id)
	if err != nil {
		return err
	}
	s, _ := p.now()
	switch {
	case !s.state.Ended():
		return fmt.Errorf("process %s has not ended, so its end cannot have been seen", id)
	case s.seen:
		return nil
	}
	return p.noteUnsynced(record.New(keeper.Seen)) // if this record is lost, the output is only kept longer
}

// Forget removes the output of a process that is gone and seen. Its key and
// status stay until Sweep removes them.
func (m *Manager) Forget(owner Owner, id ID) error {
	p, err := m.find(owner, id)
	if err != nil {
		return err
	}
	return p.drop()
}

// drop removes the output if the process is gone and was seen.
func (p *proc) drop() error {
	s, _ := p.now()
	switch {
	case s.dropped:
		return outlog.Remove(p.dir) // an earlier attempt may have left files
	case !s.gone:
		return fmt.Errorf("process %s is not gone yet: stop it first", p.id)
	case !s.seen:
		return fmt.Errorf("nobody has seen how process %s ended: read it and mark it as seen first", p.id)
	}
	if err := p.note(record.New(keeper.Dropped)); err != nil {
		return err
	}
	p.m.failHere("dropped")
	return outlog.Remove(p.dir)
}

// Abandon stops every process of an owner that was deleted, and removes all that is
// known about them. If it is interrupted, a second call does the rest.
func (m *Manager) Abandon(ctx context.Context, owner Owner) error {
	list, err := m.List(owner)
	for _, info := range list {
		if !info.Gone {
			if _, stop := m.Stop(ctx, owner, info.ID); stop != nil && !errors.Is(stop, ErrEnded) {
				err = errors.Join(err, stop)
				continue
			}
		}
		if p, find := m.find(owner, info.ID); find == nil {
			err = errors.Join(err, m.remove(p))
		}
	}
	return err
}

// Sweep removes output and records that are older than the retention allows.
func (m *Manager) Sweep(keep Retention) error {
	now := time.Now()
	var errs []error
	for _, p := range m.ended() {
		s, _ := p.now()
		if age := now.Sub(s.ended); s.seen && age > keep.Output && !s.dropped {
			errs = append(errs, p.drop())
		}
		if age := now.Sub(s.ended); s.seen && age > max(keep.Record, keep.Output) {
			errs = append(errs, m.remove(p))
		}
	}
	return errors.Join(errs...)
}

// ended returns the processes that are gone.
func (m *Manager) ended() []*proc {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ended []*proc
	for _, p := range m.procs {
		if s, _ := p.now(); s.gone {
			ended = append(ended, p)
		}
	}
	return ended
}

// remove removes a process from memory and disk. What it cannot remove of the
// folder, the next Open removes.
func (m *Manager) remove(p *proc) error {
	away, err := m.release(p)
	if err != nil || away == "" {
		return err
	}
	if err := m.removeFolder(away); err != nil {
		m.opts.Log.Warn("remove what is left of a process", "process", p.id, "err", err)
	}
	return nil
}

// release frees the key of a process on disk and in memory under one lock, so that
// no start finds one without the other. It returns the new path of the folder, or
// nothing if another call has released the key.
func (m *Manager) release(p *proc) (away string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.procs[p.id] != p {
		return "", nil
	}
	if away, err = m.setAside(p.id); err == nil {
		delete(m.procs, p.id)
	}
	return away, err
}
