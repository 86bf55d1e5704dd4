package session

import (
	"context"
	"os"
	"path/filepath"
)

// transcriptPath is where hooks can read the log of the session, or nothing if
// the session has no folder.
func (s *Session) transcriptPath() string {
	if s.host.opts.Folder == nil {
		return ""
	}
	return filepath.Join(s.host.opts.Folder(s.id), "events.jsonl")
}

// writeTranscript writes the log down where a hook may read it. It is a copy:
// nothing depends on it.
func (s *Session) writeTranscript(ctx context.Context) {
	path := s.transcriptPath()
	if path == "" {
		return
	}
	if err := s.exportTo(ctx, path); err != nil {
		s.host.log.Warn("the log could not be written down for a hook", "session", s.id, "path", path, "err", err)
	}
}

func (s *Session) exportTo(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = s.host.Log.Export(ctx, s.id, f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
