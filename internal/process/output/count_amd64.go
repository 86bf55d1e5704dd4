package output

// countBlocks counts line breaks in whole blocks.
//
//go:noescape
func countBlocks(p []byte) int64
