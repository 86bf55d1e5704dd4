package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals handles the signals of the process. The first one ends the program in an
// orderly way, and the second one ends the process at once, which loses no stored event
// either. A nil *signals handles none.
type signals struct {
	caught chan os.Signal          // signals that this process gets
	cancel context.CancelCauseFunc // ends the program, with a stopSignal as the cause

	mu          sync.Mutex
	first       bool          // true when a signal has come
	interrupted chan struct{} // closed by the first SIGINT, which then does not end the program; nil if it does
	again       func()        // called before the second signal ends the process; may be nil
}

// catchSignals starts to handle SIGINT, SIGTERM and SIGHUP, of this process and of its
// launcher, if it has one. SIGPIPE is caught so that writing to a closed pipe returns an
// error instead of ending the process.
func catchSignals(l *launcher, cancel context.CancelCauseFunc) *signals {
	s := &signals{caught: make(chan os.Signal, 4), cancel: cancel}
	signal.Notify(s.caught, syscall.SIGPIPE)
	s.catch(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // ends with the process
		for got := range l.join(s.caught) {
			if number, ok := got.(syscall.Signal); ok && number != syscall.SIGPIPE {
				s.handle(number)
			}
		}
	}()
	return s
}

// catch starts to handle signals. One that whoever started the program has ignored, as
// nohup ignores SIGHUP and a script SIGINT for what it starts in the background, stays
// ignored.
func (s *signals) catch(numbers ...syscall.Signal) {
	if s == nil {
		return
	}
	for _, number := range numbers {
		if !signal.Ignored(number) {
			signal.Notify(s.caught, number)
		}
	}
}

// takeInterrupt makes the first SIGINT from now on close the returned channel instead
// of ending the program. The function again is called if a second signal ends the
// process at once.
func (s *signals) takeInterrupt(again func()) <-chan struct{} {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupted == nil {
		s.interrupted = make(chan struct{})
	}
	s.again = again
	return s.interrupted
}

func (s *signals) handle(number syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := stopSignal{number}
	switch {
	case s.first && number == syscall.SIGHUP:
		return // a closed terminal sends several
	case number == syscall.SIGKILL: // the launcher was killed: the command is over, and others may still need the engine
		s.cancel(stop)
	case s.first:
		if s.again != nil {
			s.again()
		}
		os.Exit(stop.code())
	case number == syscall.SIGINT && s.interrupted != nil:
		close(s.interrupted)
	default:
		s.cancel(stop)
	}
	s.first = true
}
