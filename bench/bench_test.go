package main

import (
	"errors"
	"testing"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/instant"
)

func TestMain(m *testing.M) {
	instant.Main()
	m.Run()
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
