package local

import (
	"bytes"
	"context"
	"io"
	"unicode/utf8"
)

// lookAhead is the maximum number of bytes that are read after the shown part, to count
// the lines of the file.
const lookAhead = 64 << 20

// An excerpt is some lines of a file. It takes little memory, however large the file is.
type excerpt struct {
	text        []byte
	first, last int64 // numbers of the requested lines; a last of 0 is the end of the file
	seen        int64 // number of lines of the file, as far as it was read
	most        int   // maximum bytes that are shown
	full        bool  // true if the lines are more than can be shown
}

// readExcerpt reads the lines from first to last. A file has one line more than it has
// line breaks.
func readExcerpt(ctx context.Context, r io.Reader, first, last int64, most int) (excerpt, error) {
	e := excerpt{first: first, last: last, seen: 1, most: most}
	buf := make([]byte, 64<<10)
	for ahead := 0; !e.done() && ahead < lookAhead; {
		if err := ctx.Err(); err != nil {
			return e, err
		}
		n, err := r.Read(buf)
		if e.full {
			ahead += n
		}
		e.add(buf[:n])
		if err == io.EOF {
			return e, nil
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// done reports whether no more has to be read. If not all is shown, reading continues to
// count the lines.
func (e *excerpt) done() bool { return !e.full && e.last > 0 && e.seen > e.last }

// add adds the next part of the file.
func (e *excerpt) add(b []byte) {
	b = e.skip(b)
	for len(b) > 0 && !e.full && (e.last == 0 || e.seen <= e.last) {
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		e.text = append(e.text, line...)
		if ended && e.seen != e.last {
			e.text = append(e.text, '\n')
		}
		if ended {
			e.seen++
		}
		b, e.full = rest, len(e.text) > e.most
	}
	e.seen += int64(bytes.Count(b, []byte{'\n'}))
}

// skip removes what comes before the first requested line.
func (e *excerpt) skip(b []byte) []byte {
	if ends := int64(bytes.Count(b, []byte{'\n'})); e.seen+ends < e.first {
		e.seen += ends
		return nil
	}
	for e.seen < e.first {
		b = b[bytes.IndexByte(b, '\n')+1:]
		e.seen++
	}
	return b
}

// shown returns the lines, or a little more than most bytes of them if they are more.
func (e *excerpt) shown() []byte {
	if e.full {
		return e.text[:min(len(e.text), e.most+utf8.UTFMax)]
	}
	return e.text
}
