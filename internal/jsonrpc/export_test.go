package jsonrpc

import "net"

// Pair returns two connections that are connected in memory.
func Pair(a, b Options) (*Conn, *Conn) {
	left, right := net.Pipe()
	return New(left, a), New(right, b)
}
