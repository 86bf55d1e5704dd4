package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Source is a range of events of a session that a fact comes from.
type Source struct {
	Session     string
	First, Last int64 // positions in its log
}

// String formats a source, such as s1#12 or s1#12-15.
func (s Source) String() string {
	text := url.PathEscape(s.Session) + "#" + strconv.FormatInt(s.First, 10)
	if s.Last != s.First {
		text += "-" + strconv.FormatInt(s.Last, 10)
	}
	return text
}

// ParseSource parses what String returns.
func ParseSource(text string) (Source, error) {
	session, at, found := strings.Cut(text, "#")
	first, last, isRange := strings.Cut(at, "-")
	if !isRange {
		last = first
	}
	var s Source
	var errs [3]error
	s.Session, errs[0] = url.PathUnescape(session)
	s.First, errs[1] = strconv.ParseInt(first, 10, 64)
	s.Last, errs[2] = strconv.ParseInt(last, 10, 64)
	if err := errors.Join(errs[:]...); err != nil || !found {
		return Source{}, fmt.Errorf("%q is no source: it looks like session#12 or session#12-15", text)
	}
	return s, s.check()
}

func (s Source) check() error {
	if s.Session == "" || s.First < 1 || s.Last < s.First {
		return fmt.Errorf("%q is no source: events %d to %d of session %q", s.String(), s.First, s.Last, s.Session)
	}
	return nil
}

// merge returns the sorted union of sources, in which no event is repeated.
func merge(a, b []Source) []Source {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Source) int {
		return cmp.Or(cmp.Compare(x.Session, y.Session), cmp.Compare(x.First, y.First), cmp.Compare(x.Last, y.Last))
	})
	merged := all[:0]
	for _, s := range all {
		if n := len(merged); n > 0 && merged[n-1].Session == s.Session && s.First-1 <= merged[n-1].Last {
			merged[n-1].Last = max(merged[n-1].Last, s.Last)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
