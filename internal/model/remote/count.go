package remote

import (
	"encoding/json"
	"math"
	"strconv"
)

// A Tokens is a number of tokens in a usage. Anything that is no number is zero, and so is
// one that no request can have, so that a wrong count loses neither the reply nor the sums.
type Tokens int64

// mostTokens is more than any provider counts.
const mostTokens = 1 << 40

// UnmarshalJSON decodes a number, which may have a fraction.
func (n *Tokens) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if *n = 0; err == nil && math.Abs(f) <= mostTokens {
		*n = Tokens(f)
	}
	return nil
}

// DecodeUsage decodes a usage as far as that is possible. A member of another type than usual
// counts nothing, such as the empty list that PHP writes for an empty object: a wrong count
// must not lose the reply.
func DecodeUsage(data []byte, into any) { _ = json.Unmarshal(data, into) }
