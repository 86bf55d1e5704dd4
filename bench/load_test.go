package main

import (
	"testing"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/instant"
)

func TestLoadingIsMeasured(t *testing.T) {
	server, err := instant.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	func() {
		defer stopping(&err)
		at := place{dir: t.TempDir(), url: server.URL}
		o := got(openOurs(at))
		defer func() { _ = o.store.Close() }()
		l := newLoader(at, o, 10)
		for name, once := range map[string]func(){"ours": l.load, "floor": l.verify} {
			if s := compare.Measure(blocks(name, once)); s.Turns != loadTimes || s.Wall == 0 {
				t.Errorf("%s: measured %+v", name, s)
			}
			if n := allocated(once); n <= 0 {
				t.Errorf("%s: allocated %d bytes", name, n)
			}
		}
	}()
	if err != nil {
		t.Error(err)
	}
}
