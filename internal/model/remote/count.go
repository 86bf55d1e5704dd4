package remote

import (
	"math"
	"strconv"
)

// A Tokens is a number of tokens in a usage. Anything that is no number is zero, so that
// a wrong count does not lose the reply.
type Tokens int64

// mostTokens is more than any provider counts. Sums of it still fit.
const mostTokens = 1 << 50

// UnmarshalJSON decodes a number, which may have a fraction.
func (n *Tokens) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) {
		f = 0
	}
	*n = Tokens(min(max(f, -mostTokens), mostTokens))
	return nil
}
