package local

import (
	"context"
	"io"
	"os"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/text"
)

// minStream is the size from which on ShowStream leaves the content of a file in the file.
const minStream = 256 << 10

// ShowStream is Show for whoever passes the content on and does not need it in memory. If the
// answer is the whole of a large text, the content is not in it: it is the next length bytes
// of the file, or fewer if the file gets shorter meanwhile, and the caller closes the file.
// Otherwise the file is nil.
func (w *files) ShowStream(ctx context.Context, s *scope.Scope, r workspace.ShowRequest) (shown workspace.Shown, content *os.File, length int64, err error) {
	opened, err := w.scopeHere(s).Open(r.Path)
	if err != nil {
		shown, err = w.Show(ctx, s, r) // it may be a folder
		return shown, nil, 0, err
	}
	size, f := opened.Size(), opened.OSFile()
	if mark, ok := wholeText(f, size, r); ok {
		return workspace.Shown{Size: size}, f, size - mark, nil
	}
	_ = f.Close()
	shown, err = w.Show(ctx, s, r)
	return shown, nil, 0, err
}

// wholeText reports whether a file is shown as a whole, byte for byte. If so, the file is
// read from after its byte order mark on, which has mark bytes.
func wholeText(f *os.File, size int64, r workspace.ShowRequest) (mark int64, ok bool) {
	if r.Lines || size < minStream || size > min(r.MaxWhole, workspace.MaxFile) {
		return 0, false
	}
	start := make([]byte, 16)
	if _, err := io.ReadFull(f, start); err != nil || imageKind(start) != "" || text.IsUTF16(start) {
		return 0, false
	}
	mark = int64(len(start) - len(text.TrimMark(start)))
	_, err := f.Seek(mark, io.SeekStart)
	return mark, err == nil
}
