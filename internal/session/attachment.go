package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/abide-run/abide/internal/attach"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/workspace"
)

// ErrAttachment means that a file cannot be attached, and ErrUnseen that the model of the session
// cannot take an attachment.
var (
	ErrAttachment = errors.New("a file cannot be attached")
	ErrUnseen     = errors.New("the model cannot take an attachment")
)

// Attachments are what inputs bring along.
type Attachments struct{ host *Host }

// A wantedFile is an attachment that names a file whose content is wanted.
type wantedFile struct {
	Type    string `json:"type"`
	Path    string `json:"path"`
	Content bool   `json:"abideContent"` // ours: true if the content is attached, and not only the name
}

// WithContent replaces files whose content is wanted by their content, which is read in the
// workspace of the session. So what is stored is what was there when the input was sent.
func (a Attachments) WithContent(ctx context.Context, id event.SessionID, raw []json.RawMessage) ([]json.RawMessage, error) {
	list := make([]json.RawMessage, len(raw))
	var places []int
	var read []attach.Blob
	all := 0 // bytes that were read
	for i, r := range raw {
		list[i] = r
		var f wantedFile
		if json.Unmarshal(r, &f) != nil || f.Type != "file" || !f.Content {
			continue
		}
		if len(read) == attach.MaxFiles {
			return nil, fmt.Errorf("%w: there are more than %d files: send fewer of them", ErrAttachment, attach.MaxFiles)
		}
		blob, err := a.read(ctx, id, f.Path)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrAttachment, f.Path, err)
		}
		if all += len(blob.Data); all > attach.MaxAll { // before more of them are read
			break
		}
		places, read = append(places, i), append(read, blob)
	}
	if all > attach.MaxAll {
		return nil, fmt.Errorf("%w: the files have more than %d MiB together: send fewer of them, or make them smaller", ErrAttachment, attach.MaxAll>>20)
	}
	encoded, err := attach.Encode(read)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAttachment, err)
	}
	for i, at := range places {
		list[at] = encoded[i]
	}
	return list, nil
}

// read reads a file in the workspace of a session. A relative path starts at the working directory
// of the session. @SERVER:URI is a resource of an MCP server of the session.
func (a Attachments) read(ctx context.Context, id event.SessionID, name string) (blob attach.Blob, err error) {
	if server, uri, ok := resourceName(name); ok {
		return a.readResource(ctx, id, server, uri)
	}
	var dir string
	if err := a.host.inspect(ctx, id, func(tx *txn) error {
		dir = tx.State.Setup.Config.WorkingDirectory
		return nil
	}); err != nil {
		return blob, err
	}
	at := name
	if !path.IsAbs(at) {
		at = path.Join(dir, at)
	}
	err = a.host.withFiles(ctx, id, func(ctx context.Context, files workspace.Files) error {
		content, err := readWhole(ctx, files, workspace.At(at))
		if err == nil {
			blob, err = attach.New(name, content)
		}
		return err
	})
	return blob, err
}

func readWhole(ctx context.Context, files workspace.Files, at workspace.Path) ([]byte, error) {
	info, err := files.Stat(ctx, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such file in the workspace of the session")
	case err != nil:
		return nil, err
	case info.Mode.IsDir():
		return nil, workspace.ErrFolder
	case !info.Mode.IsRegular():
		return nil, workspace.ErrSpecial
	case info.Size > attach.MaxFile:
		return nil, fmt.Errorf("it has more than %d MiB", attach.MaxFile>>20)
	}
	return files.ReadFile(ctx, at)
}

// Check returns an error if the model of a session cannot take what is attached. If that is not
// known now, the turn will find out.
func (a Attachments) Check(ctx context.Context, id event.SessionID, raw []json.RawMessage) error {
	images, documents := transcript.Needs(raw)
	if !images && !documents {
		return nil
	}
	var config event.SessionConfiguredData
	var name string
	err := a.host.inspect(ctx, id, func(tx *txn) error {
		config, name = tx.State.Setup.Config, tx.State.AskedModel()
		return nil
	})
	if err != nil {
		return err
	}
	to, err := a.host.Settings.Endpoint(ctx, id, config, name)
	switch {
	case err != nil:
		return nil
	case images && blind(&config, to):
		return fmt.Errorf("%w: the model %s cannot see images; use another one, or set vision = true for it in [models] of the configuration if it can", ErrUnseen, to.Name)
	case documents && to.Unread:
		return fmt.Errorf("%w: the model %s, or its provider, does not read PDF documents; use another one, or attach the text or pictures of the pages", ErrUnseen, to.Name)
	}
	return nil
}
