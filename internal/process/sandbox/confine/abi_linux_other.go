//go:build linux && !amd64 && !arm64

package confine

const seccomp = 0

// abis is empty: the numbers of this architecture are not known, and system calls are not
// filtered.
var abis []abi
