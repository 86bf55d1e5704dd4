package remotetest

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// CheckReply fails if a reply could not be used.
func CheckReply(t testing.TB, r *model.Reply) {
	ids := make(map[string]bool)
	for _, c := range r.Calls {
		if c.ID == "" || ids[c.ID] {
			t.Errorf("a call has the id %q, which is empty or not its own", c.ID)
		}
		ids[c.ID] = true
	}
}

// CheckStream fails if a stream, whatever is in it, becomes a reply that could
// not be used or that differs from what was told.
func CheckStream(t testing.TB, stream string, decoder func(on func(model.Delta)) remote.Decoder) {
	var h Pieces
	d := decoder(h.Add)
	_ = remote.ReadStream(strings.NewReader(stream), d)
	r := d.Reply()
	CheckReply(t, r)
	reasoning := ""
	if r.Reasoning != nil {
		reasoning = r.Reasoning.Text
	}
	if h.Text != r.Text || h.Reasoning != reasoning {
		t.Errorf("the pieces are %+v, the reply is %+v", h, r)
	}
}

// CheckFastStream fails if a decoder that has a fast way does not make of a
// stream what one without it makes.
func CheckFastStream(t testing.TB, stream string, fast, slow func(on func(model.Delta)) remote.Decoder) {
	got, gotErr := follow(stream, fast)
	want, wantErr := follow(stream, slow)
	if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Errorf("the fast way reads %q as something else, with the errors %v and %v:\n%s", stream, gotErr, wantErr, diff)
	}
}

// A followed stream is what was told of it, and what became of it.
type followed struct {
	Deltas []model.Delta
	Reply  *model.Reply
}

// follow reads a stream. Ids of calls that the provider left out are chosen by
// chance, and who answers may be looked for in the first events alone: neither
// is compared.
func follow(stream string, decoder func(on func(model.Delta)) remote.Decoder) (followed, error) {
	var f followed
	d := decoder(func(d model.Delta) {
		d.CallID = ""
		f.Deltas = append(f.Deltas, d)
	})
	err := remote.ReadStream(strings.NewReader(stream), d)
	f.Reply = d.Reply()
	f.Reply.Model, f.Reply.RequestID = "", ""
	for i := range f.Reply.Calls {
		f.Reply.Calls[i].ID = ""
	}
	return f, err
}

// CheckAllocations fails if a decoder allocates for every event of plain text.
// A first event was read already, if it needs one.
func CheckAllocations(t *testing.T, d remote.Decoder, event string) {
	t.Helper()
	const n = 1000
	data := []byte(event)
	add := func() {
		if _, err := d.Event(data); err != nil {
			t.Fatal(err)
		}
	}
	add()
	allocations := testing.AllocsPerRun(10, func() {
		for range n {
			add()
		}
	})
	if allocations > 10 { // the text grows
		t.Errorf("%d events cost %.0f allocations", n, allocations)
	}
}

// BenchmarkStream reads many events, numbered 0, 1, 2, with the same text.
func BenchmarkStream(b *testing.B, decoder func() remote.Decoder, event func(n int) string, text string) {
	const n = 20_000
	var stream strings.Builder
	for i := range n {
		fmt.Fprintf(&stream, "event: delta\ndata: %s\n\n", event(i))
	}
	b.SetBytes(int64(stream.Len()))
	b.ReportAllocs()
	for b.Loop() {
		d := decoder()
		if err := remote.ReadStream(strings.NewReader(stream.String()), d); err != io.ErrUnexpectedEOF {
			b.Fatal(err)
		}
		if got := len(d.Reply().Text); got != n*len(text) {
			b.Fatal(got, " bytes of text")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/chunk")
}

// BenchmarkBody builds requests of short and long histories.
func BenchmarkBody(b *testing.B, build func(turns int) func() [][]byte) {
	for _, turns := range []int{20, 1000} {
		fragments := build(turns)
		size := int64(0)
		for _, p := range fragments() {
			size += int64(len(p))
		}
		b.Run(fmt.Sprintf("build/%d turns", turns), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			for b.Loop() {
				fragments()
			}
		})
		b.Run(fmt.Sprintf("build and copy/%d turns", turns), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			buf := make([]byte, 32<<10)
			for b.Loop() {
				r := remote.NewBody(fragments())
				for {
					if _, err := r.Read(buf); err != nil {
						break
					}
				}
			}
		})
	}
}
