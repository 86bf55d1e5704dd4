package main

import (
	"errors"
	"testing"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/floor"
	"github.com/abide-run/abide/bench/instant"
)

func TestMain(m *testing.M) {
	instant.Main()
	followProcess()
	m.Run()
}

func TestEveryWireIsMeasured(t *testing.T) {
	server, err := instant.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	least := floor.NewClient(server.URL)
	defer least.Close()
	for _, w := range wires {
		to := &sink{reply: w.reply}
		sides := map[string]compare.Side{"first": firstRequests(w.post(to)), "next": nextRequests(w.post(to)), "marshalled": nextRequests(marshalled(to))}
		for _, kind := range streams {
			kind.prompt.Tokens = 100
			sides["ours: "+kind.name], sides["floor: "+kind.name] = w.listen(server.URL, kind.prompt), w.read(least, kind.prompt)
		}
		for name, side := range sides {
			t.Run(w.name+"/"+name, func(t *testing.T) {
				var err error
				func() {
					defer stopping(&err)
					if s := compare.Measure(side); s.Turns == 0 || s.Wall == 0 {
						t.Errorf("measured %+v", s)
					}
				}()
				if err != nil {
					t.Error(err)
				}
			})
		}
		if to.size < 500_000 {
			t.Errorf("%s: a request of 1000 turns has %d bytes", w.name, to.size)
		}
	}
}

func TestEveryContenderRunsEveryWorkload(t *testing.T) {
	server, err := instant.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	at := place{dir: t.TempDir(), url: server.URL}
	for _, enter := range append(contenders, newFloor) {
		c, err := enter(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range workloads {
			t.Run(c.name+"/"+w.name, func(t *testing.T) {
				defer func() {
					if failed, ok := recover().(stopped); ok && !errors.Is(failed.err, errors.ErrUnsupported) {
						t.Error(failed.err)
					}
				}()
				if s := compare.Measure(w.side(c)); s.Turns == 0 || s.Wall == 0 {
					t.Errorf("measured %+v", s)
				}
			})
		}
		c.close()
	}
}

func TestFollowersGetEveryEvent(t *testing.T) {
	server, err := instant.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	for _, f := range []fanout{{name: "many followers", sessions: 1, followers: 5, idle: 2, events: 2}, {name: "many sessions", sessions: 5, followers: 1, events: 2}} {
		t.Run(f.name, func(t *testing.T) {
			var err error
			func() {
				defer stopping(&err)
				s := f.open(place{dir: t.TempDir(), url: server.URL})
				defer s.close()
				for _, side := range []compare.Side{s.side(s.sessions, true), s.side(s.unsent, false), s.plain()} {
					if m := compare.Measure(side); m.Turns != 5*f.events {
						t.Errorf("%s: %d events", side.Name, m.Turns)
					}
				}
			}()
			if err != nil {
				t.Error(err)
			}
		})
	}
}
