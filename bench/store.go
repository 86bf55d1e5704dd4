package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// measureSyncs measures how many events share a sync when many sessions are busy.
func measureSyncs(at place, sessions, turns int) error {
	o, err := openOurs(at.below("syncs"))
	if err != nil {
		return err
	}
	defer o.store.Close()
	l := load{sessions: sessions, turns: turns}
	var open []session
	for range sessions {
		s, err := o.open(0)
		if err != nil {
			return err
		}
		open = append(open, s)
	}
	before := o.store.Stats()
	if err := l.run(open); err != nil {
		return err
	}
	after := o.store.Stats()
	for _, s := range open {
		if err := s.close(); err != nil {
			return err
		}
	}
	events, commits := after.Events-before.Events, after.Commits-before.Commits
	fmt.Printf("%d busy sessions: %d events in %d syncs, one sync per %.1f events\n", sessions, events, commits, float64(events)/float64(commits))
	return nil
}

// measureDisk measures how much a plain turn adds to the file after a checkpoint.
func measureDisk(at place, turns int) error {
	at = at.below("disk")
	o, err := openOurs(at)
	if err != nil {
		return err
	}
	s, err := o.open(0)
	if err != nil {
		return err
	}
	if err := (load{turns: turns}).runOne(s); err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	if err := o.store.Close(); err != nil { // copies the write-ahead log into the file
		return err
	}
	info, err := os.Stat(filepath.Join(at.dir, "abide.db"))
	if err != nil {
		return err
	}
	payload := len(prompt) + len(answer)
	fmt.Printf("on disk after a checkpoint: %d bytes per plain turn (of %d bytes of prompt and answer)\n", info.Size()/int64(turns), payload)
	return nil
}

// below returns a place in a new folder for one measurement.
func (at place) below(name string) place {
	at.dir = filepath.Join(at.dir, name)
	_ = os.MkdirAll(at.dir, 0o700) // opening a file there reports the error
	return at
}
