package output

// CountLines counts line breaks. Package bytes has a fast way too, but a keeper
// cannot wait until that is initialised, and everything that is printed goes
// through here.
func CountLines(p []byte) (n int64) {
	blocks := len(p) / block
	n = countBlocks(p[:blocks*block])
	for _, c := range p[blocks*block:] {
		if c == '\n' {
			n++
		}
	}
	return n
}

// block is how many bytes are looked at together.
const block = 64
