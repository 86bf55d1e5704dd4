package main

import "testing"

func TestALongSessionIsMeasured(t *testing.T) {
	way, err := runLongSession(place{dir: t.TempDir()}, 200)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range way {
		if s.Turn <= 0 || s.Resident <= 0 || s.Tokens <= 0 || s.Compactions <= 0 {
			t.Errorf("part %d: %+v", i+1, s)
		}
	}
}
