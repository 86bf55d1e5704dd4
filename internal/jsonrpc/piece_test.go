package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A page is what a peer was told.
type page struct {
	mu    sync.Mutex
	lines []line
}

type line struct{ Lane, Stream, Text string }

func (p *page) take(_ context.Context, req *Request) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var l line
	if err := json.Unmarshal(req.Params, &l); err != nil {
		l.Text = fmt.Sprintf("%v in %s", err, req.Params)
	}
	p.lines = append(p.lines, l)
	return nil, nil
}

// read returns what came when nothing moves any more.
func (p *page) read() []line {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

func (l line) piece() Piece {
	head := fmt.Appendf(nil, `{"lane":%q,"stream":%q,"text":"`, l.Lane, l.Stream)
	return Piece{Lane: l.Lane, Stream: []byte(l.Stream), Head: head, Text: []byte(l.Text), Tail: []byte(`"}`)}
}

func (l line) try(c *Conn) bool { return c.TryPiece("piece", l.piece()) }

// written returns a connection and what its peer is told.
func written(t *testing.T) (*Conn, *page) {
	p := new(page)
	writer, reader := Pair(Options{}, Options{Handler: HandlerFunc(p.take)})
	start(t, writer, reader)
	synctest.Wait() // one that does not run yet would be closed at once
	return writer, p
}

func TestPiecesAtAnOrdinaryPaceArriveAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := written(t)
		var want []line
		for i := range 200 {
			l := line{"a", "1", fmt.Sprint(i)}
			want = append(want, l)
			if !l.try(c) {
				t.Fatal("there is room")
			}
			if got := p.read(); len(got) != i+1 {
				t.Fatalf("after piece %d there are %d", i+1, len(got))
			}
			time.Sleep(pace)
		}
		if got := p.read(); !slices.Equal(got, want) {
			t.Errorf("the peer was told %v", got)
		}
	})
}

func TestPiecesThatComeTooFastAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := written(t)
		var text strings.Builder
		for i := range burst + 100 {
			l := line{"a", "1", fmt.Sprint(i, " ")}
			text.WriteString(l.Text)
			l.try(c)
		}
		if got := p.read(); len(got) != burst {
			t.Errorf("%d pieces left at once, want %d", len(got), burst)
		}
		time.Sleep(pace)
		got := p.read()
		if len(got) != burst+1 {
			t.Errorf("a moment later there are %d, want one more", len(got))
		}
		if all := joinText(got); all != text.String() {
			t.Errorf("the text is %q", all)
		}
		time.Sleep(time.Hour)
		for range burst {
			line{"a", "1", "x"}.try(c)
		}
		if got := p.read(); len(got) != 2*burst+1 {
			t.Errorf("after a pause %d came, want %d", len(got), 2*burst+1)
		}
	})
}

func joinText(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text)
	}
	return b.String()
}

func TestAPeerThatIsBehindGetsFewPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(page)
		c, reader := Pair(Options{}, Options{Handler: HandlerFunc(p.take)})
		start(t, c)
		var text strings.Builder
		for i := range 2000 {
			l := line{"a", "1", fmt.Sprint(i, " ")}
			text.WriteString(l.Text)
			l.try(c)
			time.Sleep(pace / 10)
		}
		start(t, reader)
		got := p.read()
		if len(got) > 2*burst {
			t.Errorf("there are %d pieces", len(got))
		}
		if all := joinText(got); all != text.String() {
			t.Errorf("the text is %q", all)
		}
	})
}

func TestPiecesThatWaitLeaveBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := written(t)
		for range burst + 2 {
			line{"a", "1", "x"}.try(c)
		}
		c.Close()
		if got := joinText(p.read()); len(got) != burst+2 {
			t.Errorf("the peer was told %q", got)
		}
		if (line{"a", "1", "x"}).try(c) {
			t.Error("a piece was queued after the end")
		}
	})
}

func TestAPieceWithoutRoomIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(page)
		c, reader := Pair(Options{Outbox: 16 << 10}, Options{Handler: HandlerFunc(p.take)})
		start(t, c)
		taken := 0
		for (line{"a", "1", "0123456789"}).try(c) {
			taken++
		}
		if taken < burst+100 || taken > 2000 {
			t.Errorf("%d pieces were taken", taken)
		}
		drained := c.Drained()
		start(t, reader)
		time.Sleep(pace)
		if got := joinText(p.read()); len(got) != 10*taken {
			t.Errorf("%d bytes arrived, want %d", len(got), 10*taken)
		}
		<-drained
	})
}

// story is what lanes tell, as far as order is promised: the lines of each lane
// between two plain ones, with neighbours of one stream joined.
func story(lines []line) []map[string][]line {
	part := make(map[string][]line)
	parts := []map[string][]line{part}
	for _, l := range lines {
		told := part[l.Lane]
		switch last := len(told) - 1; {
		case l.Lane == "":
			part = map[string][]line{"": {l}}
			parts = append(parts, part)
		case last >= 0 && told[last].Stream == l.Stream:
			told[last].Text += l.Text
		default:
			part[l.Lane] = append(told, l)
		}
	}
	return parts
}

func TestNothingOfAStreamIsLostDoubledOrOutOfOrder(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			c, p := written(t)
			r := rand.New(rand.NewPCG(seed, 0))
			var said []line
			for i := range 500 {
				l := line{Lane: string(rune('a' + r.IntN(3))), Stream: string(rune('1' + r.IntN(2))), Text: fmt.Sprint(i, " ")}
				if r.IntN(20) == 0 {
					l.Lane, l.Stream = "", ""
				}
				said = append(said, l)
				if l.Lane == "" {
					c.Notify("plain", l)
				} else {
					l.try(c)
				}
				if r.IntN(30) == 0 {
					time.Sleep(time.Duration(r.IntN(int(3 * pace))))
				}
			}
			time.Sleep(pace)
			if got, want := fmt.Sprint(story(p.read())), fmt.Sprint(story(said)); got != want {
				t.Errorf("seed %d: the peer was told\n%s\nwant\n%s", seed, got, want)
			}
		})
	}
}

func TestWhatAPieceIsMadeOfCanBeUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := written(t)
		one := line{"a", "1", "x"}.piece()
		for range burst + 3 {
			one.Head, one.Text, one.Tail = bytes.Clone(one.Head), []byte("x"), []byte(`"}`)
			c.TryPiece("piece", one)
			clear(one.Text)
			clear(one.Tail)
		}
		time.Sleep(pace)
		if got := joinText(p.read()); got != strings.Repeat("x", burst+3) {
			t.Errorf("the peer was told %q", got)
		}
	})
}
