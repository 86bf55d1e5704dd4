package main

import "sync"

// A follower takes in what a session shows, and tells when a turn is over.
type follower struct {
	first chan struct{} // closed with the first event
	idle  chan error

	once   sync.Once
	pieces []string
	failed error
}

func newFollower() *follower {
	return &follower{first: make(chan struct{}), idle: make(chan error, 1)}
}

// take takes one event, from one goroutine.
func (f *follower) take(kind, delta string) {
	f.once.Do(func() { close(f.first) })
	switch kind {
	case "assistant.message_delta":
		f.pieces = append(f.pieces, delta)
	case "session.idle":
		f.idle <- f.failed
	}
}

// fail makes the turn fail.
func (f *follower) fail(err error) { f.failed = err }

// follow runs a turn and returns the pieces of its answer.
func (f *follower) follow(send func() error) ([]string, error) {
	f.pieces = f.pieces[:0] // nothing is shown between turns
	if err := send(); err != nil {
		return nil, err
	}
	err := <-f.idle
	return f.pieces, err
}
