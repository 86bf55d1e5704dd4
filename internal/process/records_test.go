package process

import (
	"reflect"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
	"pgregory.net/rapid"
)

func TestASpecIsReadAsItWasWritten(t *testing.T) {
	text := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	some := rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 20), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		b := startInfo{
			spec: Spec{
				Key: some.Draw(t, "key"), Owner: Owner(some.Draw(t, "owner")), Command: text.Draw(t, "command"),
				Args: rapid.SliceOfN(text, 1, 5).Draw(t, "args"), Dir: text.Draw(t, "dir"), Title: text.Draw(t, "title"),
				Class: OneShot, Stdin: rapid.Bool().Draw(t, "stdin"), Quota: rapid.Int64().Draw(t, "quota"),
			},
			time: time.Unix(0, rapid.Int64().Draw(t, "time")), boot: text.Draw(t, "boot"), marker: some.Draw(t, "marker"),
		}
		if rapid.Bool().Draw(t, "tty") {
			b.spec.TTY = &Size{}
		}
		r, err := record.Parse(b.record().Line())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseStartInfo(r); err != nil || !reflect.DeepEqual(got, b) {
			t.Fatalf("%+v, %v, want %+v", got, err, b)
		}
	})
}

// Whatever records a journal has, a final state never changes again.
func FuzzStatus(f *testing.F) {
	f.Add([]byte("started exited ended"), uint32(256))
	f.Add([]byte("stopping lost exited seen dropped failed"), uint32(9))
	kinds := []string{keeper.Started, keeper.Failed, keeper.Stopping, keeper.Exited, keeper.Lost, keeper.Ended, keeper.Seen, keeper.Dropped, "other"}
	f.Fuzz(func(t *testing.T, steps []byte, raw uint32) {
		s := status{state: Starting}
		var end State
		for _, step := range steps {
			r := record.New(kinds[int(step)%len(kinds)]).WithInt("status", int64(raw)).With("reason", "why").WithInt("bytes", int64(step))
			s.apply(r)
			if end != "" && s.state != end {
				t.Fatalf("%s became %s by %s", end, s.state, r.Kind)
			}
			if s.state.Ended() {
				end = s.state
			}
			if s.exit != nil && (s.exit.Code < 0 || s.exit.Code > 255) {
				t.Fatalf("%+v", s.exit)
			}
		}
	})
}
