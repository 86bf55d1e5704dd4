package remote

import "strconv"

// AppendSampling appends how the tokens of the reply are drawn. All wires have the same
// members for it.
func (q *Query) AppendSampling(b []byte) []byte {
	if t := q.Temperature; t != nil {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *t, 'g', -1, 64)
	}
	if p := q.TopP; p != nil {
		b = strconv.AppendFloat(append(b, `,"top_p":`...), *p, 'g', -1, 64)
	}
	return b
}

// CacheControl returns the value that tells Claude to cache everything so far.
func (q *Query) CacheControl() string {
	if q.CacheTTL == "" {
		return `{"type":"ephemeral"}`
	}
	return `{"type":"ephemeral","ttl":` + strconv.Quote(q.CacheTTL) + `}`
}
