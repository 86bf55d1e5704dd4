package remote

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readEvents returns the data of all events.
func readEvents(s *events) ([]string, error) {
	var all []string
	for {
		data, err := s.next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

var streams = map[string]struct {
	in   string
	want []string
}{
	"empty":                            {"", nil},
	"one":                              {"data: a\n\n", []string{"a"}},
	"two":                              {"data: a\n\ndata: b\n\n", []string{"a", "b"}},
	"no space":                         {"data:a\n\n", []string{"a"}},
	"only one space is the separator":  {"data:  a \n\n", []string{" a "}},
	"CRLF":                             {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
	"CR":                               {"data: a\r\rdata: b\r\r", []string{"a", "b"}},
	"all line ends at once":            {"data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", []string{"a", "b", "c"}},
	"several lines":                    {"data: a\ndata: b\n\n", []string{"a\nb"}},
	"several lines, CRLF":              {"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []string{"a\nb", "c"}},
	"several lines, some empty":        {"data: a\ndata\ndata:\ndata: b\n\n", []string{"a\n\n\nb"}},
	"comments and keep-alive lines":    {": ping\n\n:\ndata: a\n: ping\n\n\n\n", []string{"a"}},
	"other fields":                     {"event: x\nid: 7\nretry: 1\ndata: a\ndatab: no\n\nevent: y\n\n", []string{"a"}},
	"byte order mark":                  {"\xEF\xBB\xBFdata: a\n\n", []string{"a"}},
	"byte order mark alone":            {"\xEF\xBB\xBF", nil},
	"half a byte order mark":           {"\xEF\xBB", nil},
	"a byte order mark later is text":  {"data: a\n\n\xEF\xBB\xBFdata: b\n\n", []string{"a"}},
	"no empty line at the end":         {"data: a\n\ndata: b\n", []string{"a", "b"}},
	"no line end at the end":           {"data: a\n\ndata: b", []string{"a", "b"}},
	"an event without data is none":    {"event: ping\n\ndata: a\n\n", []string{"a"}},
	"data that is empty is still data": {"data:\n\n", []string{""}},
}

func TestEventsAreReadHoweverTheyArrive(t *testing.T) {
	for name, test := range streams {
		t.Run(name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"at once":        strings.NewReader(test.in),
				"byte by byte":   iotest.OneByteReader(strings.NewReader(test.in)),
				"data with EOF":  iotest.DataErrReader(strings.NewReader(test.in)),
				"half and halve": iotest.HalfReader(strings.NewReader(test.in)),
			} {
				got, err := readEvents(newEvents(r))
				if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
					t.Errorf("%s: err = %v, events differ (-want +got):\n%s", how, err, diff)
				}
			}
		})
	}
}

func TestALongLineGrowsTheBufferUpToTheLimit(t *testing.T) {
	const limit = 256 << 10
	line := "data: " + strings.Repeat("x", limit-16) + "\n\n"
	for name, test := range map[string]struct {
		in   string
		want error
	}{
		"below":                      {"data: a\n\n" + line, nil},
		"above":                      {"data: a\n\n" + strings.Repeat("x", limit) + line, errLineTooLong},
		"many lines of one event":    {strings.TrimSuffix(line, "\n") + line, errLineTooLong},
		"no end at all":              {strings.Repeat("x", 3*limit), errLineTooLong},
		"short lines without limit":  {strings.Repeat("data: abcdefgh\n\n", limit/8), nil},
		"comments without any limit": {strings.Repeat(": abcdefgh\n", limit/8), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEvents(strings.NewReader(test.in))
			s.limit = limit
			if _, err := readEvents(s); !errors.Is(err, test.want) {
				t.Errorf("err = %v, want %v", err, test.want)
			}
			if len(s.buf) > 2*limit {
				t.Errorf("the buffer grew to %d bytes with a limit of %d", len(s.buf), limit)
			}
		})
	}
}

func TestAnErrorOfTheStreamComesAfterWhatWasRead(t *testing.T) {
	broken := errors.New("broken")
	got, err := readEvents(newEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))))
	if diff := cmp.Diff([]string{"a"}, got); diff != "" || !errors.Is(err, broken) {
		t.Errorf("events %q, err = %v, want one event and the error", got, err)
	}
}

func TestAReaderThatGivesNothingIsAnError(t *testing.T) {
	if _, err := newEvents(stuck{}).next(); err != io.ErrNoProgress {
		t.Errorf("err = %v, want io.ErrNoProgress", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestReadingEventsDoesNotAllocate(t *testing.T) {
	const n = 1000
	r := strings.NewReader("")
	in := strings.Repeat("data: {\"choices\":[]}\n\n", n)
	s := newEvents(r)
	allocations := testing.AllocsPerRun(10, func() {
		r.Reset(in)
		*s = events{r: r, limit: s.limit, buf: s.buf, data: s.data, fresh: true}
		for range n {
			if _, err := s.next(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocations > 0 {
		t.Errorf("%d events cost %.0f allocations, want none", n, allocations)
	}
}

// plainEvents reads a whole stream in the simplest way there is.
func plainEvents(in string) []string {
	in = strings.TrimPrefix(in, "\xEF\xBB\xBF")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	var all, data []string
	for line := range strings.SplitSeq(in+"\n\n", "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && data != nil:
			all, data = append(all, strings.Join(data, "\n")), nil
		case name == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return all
}

func FuzzEventsAreReadAsInTheSimplestWay(f *testing.F) {
	for _, s := range streams {
		f.Add(s.in, 3)
	}
	f.Fuzz(func(t *testing.T, in string, piece int) {
		got, err := readEvents(newEvents(&shortReader{in, max(1, piece)}))
		if diff := cmp.Diff(plainEvents(in), got); diff != "" || err != nil {
			t.Errorf("%q: err = %v, events differ (-want +got):\n%s", in, err, diff)
		}
	})
}

// A shortReader gives a few bytes at a time.
type shortReader struct {
	text string
	n    int
}

func (r *shortReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.n)], r.text)
	r.text = r.text[n:]
	return n, nil
}
