package window_test

import (
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
)

// A document takes room, and a long one takes more.
func TestDocumentsTakeRoom(t *testing.T) {
	of := func(bytes int) int {
		return window.Of(&model.Message{Documents: []model.Document{{MediaType: model.PDF, Data: make([]byte, bytes)}}})
	}
	if none := window.Of(&model.Message{}); of(1) < none+1000 || of(1<<20) < none+20_000 {
		t.Errorf("%d tokens for none, %d for a short one, %d for a long one", none, of(1), of(1<<20))
	}
}
