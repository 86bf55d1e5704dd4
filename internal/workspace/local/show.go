package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/text"
)

// Show implements workspace.Files.
func (w *files) Show(ctx context.Context, s *scope.Scope, r workspace.ShowRequest) (workspace.Shown, error) {
	r.MaxWhole, r.MaxImage = min(r.MaxWhole, workspace.MaxFile), min(r.MaxImage, workspace.MaxFile)
	r.MaxLines, r.MaxNames = clamp(r.MaxLines, workspace.MaxText), clamp(r.MaxNames, workspace.MaxPage)
	s = w.scopeHere(s)
	f, err := s.Open(r.Path)
	switch {
	case errors.Is(err, unix.EISDIR):
		return showFolder(ctx, s, r)
	case err != nil:
		return workspace.Shown{}, err
	}
	defer func() { _ = f.Close() }()
	return showFile(ctx, f, r)
}

// clamp returns a number from a request that is at least 0 and at most most.
func clamp(n, most int) int { return max(0, min(n, most)) }

// showFile shows an open file.
func showFile(ctx context.Context, f *scope.File, r workspace.ShowRequest) (workspace.Shown, error) {
	shown := workspace.Shown{Size: f.Size()}
	in, start := stoppable{ctx, f}, make([]byte, 16)
	n, err := io.ReadFull(in, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return shown, err
	}
	rest := io.MultiReader(bytes.NewReader(start[:n]), in)
	switch shown.Image = imageKind(start[:n]); {
	case shown.Image != "" && shown.Size <= r.MaxImage:
		shown.Content, err = readSized(io.LimitReader(rest, r.MaxImage), shown.Size)
		return shown, err
	case shown.Image == "" && r.Lines:
		return showLines(ctx, rest, shown, r)
	case shown.Image == "" && shown.Size <= r.MaxWhole:
		shown.Content, err = readText(rest, text.IsUTF16(start[:n]), shown.Size, r.MaxWhole)
		return shown, err
	}
	return shown, nil
}

// showLines shows some lines of a file of any size.
func showLines(ctx context.Context, in io.Reader, shown workspace.Shown, r workspace.ShowRequest) (workspace.Shown, error) {
	decoded, err := text.Reader(in)
	if err != nil {
		return shown, err
	}
	e, err := readExcerpt(ctx, decoded, r.First, r.Last, r.MaxLines)
	shown.Content, shown.Seen, shown.Full = e.shown(), e.seen, e.full
	return shown, err
}

// readText returns the decoded text of a file that has about size bytes, and one byte more
// than most if it has grown meanwhile.
func readText(in io.Reader, utf16 bool, size, most int64) ([]byte, error) {
	if utf16 {
		decoded, err := text.Reader(in)
		if err != nil {
			return nil, err
		}
		return readSized(io.LimitReader(decoded, most+1), size)
	}
	all, err := readSized(io.LimitReader(in, most+text.LongestMark+1), size) // it needs no buffer for decoding
	all = text.TrimMark(all)
	return all[:min(int64(len(all)), most+1)], err
}

// readSized reads everything from a reader that has about size bytes. The result is not
// nil.
func readSized(r io.Reader, size int64) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// imageKind returns the MIME type of an image with this beginning, or "".
func imageKind(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(start, []byte("GIF87a")), bytes.HasPrefix(start, []byte("GIF89a")):
		return "image/gif"
	case len(start) >= 12 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// showFolder shows the first names in a folder, sorted.
func showFolder(ctx context.Context, s *scope.Scope, r workspace.ShowRequest) (workspace.Shown, error) {
	d, err := s.OpenDir(r.Path)
	if err != nil {
		return workspace.Shown{}, err
	}
	defer func() { _ = d.Close() }()
	shown := workspace.Shown{Folder: true}
	err = d.Each(make([]byte, 1<<15), func(name []byte, _ scope.Kind) bool {
		shown.Names = append(shown.Names, string(name))
		if shown.Count++; len(shown.Names) >= 2*r.MaxNames {
			shown.Names = firstNames(shown.Names, r.MaxNames)
		}
		return ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return workspace.Shown{}, context.Cause(ctx)
	}
	shown.Names = firstNames(shown.Names, r.MaxNames)
	return shown, err
}

func firstNames(names []string, most int) []string {
	slices.Sort(names)
	return names[:min(len(names), most)]
}
