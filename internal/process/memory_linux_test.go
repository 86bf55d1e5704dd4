package process

import "testing"

func TestAKeeperNeedsLittleMemoryHoweverMuchIsPrinted(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped: memory, because the race detector takes most of it")
	}
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "head -c 1000000 /dev/zero; echo little >&2; read x; head -c 300000000 /dev/zero; echo much >&2; exec sleep 1000")
	s.Stdin = true
	id := start(t, m, s).ID
	awaitOutput(t, m, id, "little")
	info, _ := m.Get(me, id)
	before, _ := memory(t, keeperOf(t, info))
	if err := m.WriteStdin(t.Context(), me, id, Input{Data: []byte("go\n")}); err != nil {
		t.Fatal(err)
	}
	for r := (ReadRequest{Wait: true, Stream: Stderr}); r.Offset < 301000000; {
		c, err := m.Read(t.Context(), me, id, r)
		if err != nil {
			t.Fatal(err)
		}
		r.Offset = c.Next
	}
	after, peak := memory(t, keeperOf(t, info))
	t.Logf("private memory: %d after a megabyte, %d after three hundred; resident at most %d", before, after, peak)
	if after > 2<<20 || after > before+512<<10 {
		t.Errorf("private memory is %d, after a megabyte it was %d", after, before)
	}
}
