//go:build !amd64

package output

// countBlocks counts line breaks in whole blocks, eight bytes at a time.
func countBlocks(p []byte) (n int64) {
	for ; len(p) >= block; p = p[block:] {
		sum := uint64(0) // eight counts, one for each place in a word
		for i := 0; i < block; i += 8 {
			sum += breaks(p[i : i+8])
		}
		n += int64(sum * ones >> 56)
	}
	return n
}

const ones = 0x0101010101010101

// breaks has a 1 for every byte of eight that is a line break.
func breaks(b []byte) uint64 {
	const low = 0x7f * ones
	x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
	x ^= '\n' * ones
	return ^(x&low + low | x | low) >> 7
}
