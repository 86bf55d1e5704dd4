package cli

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/attach"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// attached returns the files of --attach as attachments. Files of another workspace, and resources
// of MCP servers, are named, and the engine reads them there; all others are read here, because
// the engine may have another working directory.
func (r *runner) attached() ([]json.RawMessage, error) {
	var list []json.RawMessage
	var here []attach.Blob
	for _, name := range r.flags.attach {
		own, local := strings.CutPrefix(name, event.LocalWorkspace+":")
		switch {
		case isResource(name), r.away && !local:
			text, err := json.Marshal(api.AttachedFile{Type: "file", Path: name, DisplayName: path.Base(name), Content: true})
			if err != nil {
				return nil, err
			}
			list = append(list, text)
		default:
			if !local {
				own = name
			}
			blob, err := readAttachment(own)
			if err != nil {
				return nil, usagef("--attach %s: %w", name, err)
			}
			here = append(here, blob)
		}
	}
	if !r.away {
		here = append(here, mentioned(r.flags.mentions)...)
	}
	encoded, err := attach.Encode(here)
	if err != nil {
		return nil, usagef("--attach: %w", err)
	}
	return append(list, encoded...), nil
}

// mentions returns the words of a text that begin with @, without it.
func mentions(prompt string) []string {
	var list []string
	for _, word := range strings.Fields(prompt) {
		if name, ok := strings.CutPrefix(word, "@"); ok && name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// mentioned returns the texts among the files that words name, which may end with a punctuation
// mark. Any other word stays what it is, and of other files the agent knows the name.
func mentioned(words []string) []attach.Blob {
	var list []attach.Blob
	for _, word := range words {
		for _, name := range []string{word, strings.TrimRight(word, ".,;:!?)\"'")} {
			blob, err := readAttachment(name)
			if err == nil && blob.MIMEType == attach.Text {
				blob.Name = name
				list = append(list, blob)
				break
			}
		}
	}
	return list
}

// isResource reports whether a name is that of a resource of an MCP server, @SERVER:URI.
func isResource(name string) bool {
	server, uri, ok := strings.Cut(name, ":")
	return ok && strings.HasPrefix(server, "@") && len(server) > 1 && uri != "" && !strings.Contains(server, "/")
}

func readAttachment(name string) (attach.Blob, error) {
	content, err := readFile(name, attach.MaxFile)
	if err != nil {
		return attach.Blob{}, err
	}
	return attach.New(name, content)
}

// attachError gives the error of a message that was not sent its exit code: a file that cannot be
// attached is a mistake of the command line, and a model that cannot take it is one of the
// configuration, which says what models can do.
func attachError(err error) error {
	fault, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok && fault.Code == api.CodeAttachment:
		return usagef("%s", strings.TrimPrefix(fault.Message, "a file cannot be attached: "))
	case ok && fault.Code == api.CodeUnseen:
		return configError(errors.New(strings.TrimPrefix(fault.Message, "the model cannot take an attachment: ")))
	}
	return err
}
