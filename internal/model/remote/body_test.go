package remote

import (
	"bytes"
	"testing"
	"testing/iotest"
)

// pieces are bytes in pieces of many lengths.
func pieces(n int) [][]byte {
	var all [][]byte
	for i := range n {
		all = append(all, bytes.Repeat([]byte{byte(i)}, i%7*i%501))
	}
	return all
}

func TestABodyCanBeReadInPiecesOfAnySize(t *testing.T) {
	if err := iotest.TestReader(NewBody(pieces(40)), bytes.Join(pieces(40), nil)); err != nil {
		t.Error(err)
	}
}

func TestReadsOfABodyAreFull(t *testing.T) {
	buf := make([]byte, 32<<10)
	if n, err := NewBody(pieces(1000)).Read(buf); n != len(buf) || err != nil {
		t.Errorf("Read = %d, %v, want %d bytes: short reads become short writes", n, err, len(buf))
	}
}

func TestTheSizeOfABodyIsThatOfItsPieces(t *testing.T) {
	if got, want := size(pieces(100)), int64(len(bytes.Join(pieces(100), nil))); got != want {
		t.Errorf("size = %d, want %d", got, want)
	}
}
