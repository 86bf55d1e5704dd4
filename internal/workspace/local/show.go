package local

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/text"
)

// Show implements workspace.Files.
func (w *files) Show(ctx context.Context, s *scope.Scope, r workspace.ShowRequest) (workspace.Shown, error) {
	r.MaxWhole, r.MaxImage = min(r.MaxWhole, workspace.MaxFile), min(r.MaxImage, workspace.MaxFile)
	r.MaxLines, r.MaxNames = clamp(r.MaxLines, workspace.MaxText), clamp(r.MaxNames, workspace.MaxPage)
	s = w.scopeHere(s)
	info, err := s.Stat(r.Path)
	switch {
	case err != nil:
		return workspace.Shown{}, err
	case info.Kind == scope.Folder:
		return showFolder(ctx, s, r)
	}
	f, err := s.Open(r.Path)
	if err != nil {
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
	start := make([]byte, 16)
	in := stoppable{ctx, f}
	n, err := io.ReadFull(in, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return shown, err
	}
	rest := io.MultiReader(bytes.NewReader(start[:n]), in)
	if shown.Image = imageKind(start[:n]); shown.Image != "" {
		if shown.Size <= r.MaxImage {
			shown.Content, err = readSized(io.LimitReader(rest, r.MaxImage), shown.Size)
		}
		return shown, ignoreShort(err)
	}
	decoded, err := text.Reader(rest)
	if err != nil {
		return shown, err
	}
	if r.Lines {
		e, err := readExcerpt(ctx, decoded, r.First, r.Last, r.MaxLines)
		shown.Content, shown.Seen, shown.Full = e.shown(), e.seen, e.full
		return shown, err
	}
	if shown.Size <= r.MaxWhole {
		shown.Content, err = readSized(io.LimitReader(decoded, r.MaxWhole+1), shown.Size)
	}
	return shown, ignoreShort(err)
}

// ignoreShort ignores the end of a file that begins with fewer bytes than were looked at.
func ignoreShort(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
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
