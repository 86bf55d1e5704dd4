package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// An attachment is what a client sends along with an input, in the protocol's
// form. Its kind says which fields count.
type attachment struct {
	Kind        string `json:"type"`
	Path        string `json:"path"`     // of a file or a directory
	FilePath    string `json:"filePath"` // of a selection
	DisplayName string `json:"displayName"`
	Lines       *struct {
		Start, End int
	} `json:"lineRange"`
	Text      string `json:"text"`
	Selection struct {
		Start, End struct{ Line int }
	} `json:"selection"`
	Data     []byte `json:"data"` // of a blob, in base64
	MIMEType string `json:"mimeType"`

	// Of a reference to something on GitHub.
	Number        int    `json:"number"`
	Title         string `json:"title"`
	State         string `json:"state"`
	ReferenceType string `json:"referenceType"`
	URL           string `json:"url"`
}

// attachments reads those that can be read.
func attachments(raw []json.RawMessage) []attachment {
	var list []attachment
	for _, r := range raw {
		var a attachment
		if json.Unmarshal(r, &a) == nil {
			list = append(list, a)
		}
	}
	return list
}

// Look tells of a path how many lines the file has, or how many entries the
// folder. It reports false if that is not known.
type Look func(path string) (count int, known bool)

// Completed returns attachments with the fields that clients may leave out but
// typed clients cannot read an event without: a name, and what was selected.
func Completed(raw []json.RawMessage) []json.RawMessage {
	list := make([]json.RawMessage, len(raw))
	for i, r := range raw {
		list[i] = completed(r)
	}
	return list
}

func completed(raw json.RawMessage) json.RawMessage {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	wanted := make(map[string]any)
	switch fields["type"] {
	case "file", "directory":
		wanted["displayName"] = nameOf(fields["path"])
	case "selection":
		nowhere := map[string]int{"line": 0, "character": 0}
		wanted["displayName"], wanted["text"] = nameOf(fields["filePath"]), ""
		wanted["selection"] = map[string]any{"start": nowhere, "end": nowhere}
	}
	missing := false
	for name, value := range wanted {
		if fields[name] == nil {
			fields[name], missing = value, true
		}
	}
	if !missing {
		return raw
	}
	text, _ := json.Marshal(fields) // it came from JSON
	return text
}

// nameOf is the last part of a path, whichever way its slashes lean.
func nameOf(path any) string {
	text, _ := path.(string)
	return text[strings.LastIndexAny(text, `/\`)+1:]
}

// gap stands between what was said and what a runtime adds to it.
const gap = "\n\n\n\n"

// Reads is what the model reads of an input: what was said, and what was
// attached to it. Files are named, not shown: the model has tools for that.
// Images are not part of it.
func Reads(said string, raw []json.RawMessage, look Look) string {
	if len(raw) == 0 {
		return said
	}
	var before, tagged, references, after []string
	for _, a := range attachments(raw) {
		switch a.Kind {
		case "file":
			tagged = append(tagged, a.file(look))
		case "directory":
			tagged = append(tagged, counted(a.Path, look, "(%d items)"))
		case "selection":
			before = append(before, a.selection())
		case "github_reference":
			references = append(references, fmt.Sprintf("#%d - %s [%s] [%s] (%s)", a.Number, a.Title, a.ReferenceType, a.State, a.URL))
		case "blob":
			if !a.image() {
				after = append(after, a.blob())
			}
		}
	}
	after = append([]string{block("tagged_files", tagged), block("github_references", references)}, after...)
	parts := append(before, said)
	if text := join(after...); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, gap)
}

// block is a list that the model can tell from what people say.
func block(name string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	if name == "tagged_files" {
		for i := range lines {
			lines[i] = "* " + lines[i]
		}
	}
	return fmt.Sprintf("<%s>\n%s\n</%s>", name, strings.Join(lines, "\n"), name)
}

func counted(path string, look Look, format string, args ...any) string {
	n, ok := look(path)
	if !ok {
		return path
	}
	return path + " " + fmt.Sprintf(format, append(args, n)...)
}

func (a attachment) file(look Look) string {
	switch {
	case a.Lines == nil:
		return counted(a.Path, look, "(%d lines)")
	case a.Lines.Start == a.Lines.End:
		return counted(a.Path, look, "(line %d of %d lines)", a.Lines.Start)
	}
	return counted(a.Path, look, "(lines %d-%d of %d lines)", a.Lines.Start, a.Lines.End)
}

// selection is what somebody marked in an editor, whose lines count from zero.
func (a attachment) selection() string {
	first, last := a.Selection.Start.Line+1, a.Selection.End.Line+1
	place := fmt.Sprintf("line %d", first)
	if last > first {
		place = fmt.Sprintf("lines %d-%d", first, last)
	}
	return fmt.Sprintf("<ide_selection>\nThe user has the following text selected in their IDE. This may or may not be related to their request.\nFile: %s (%s)\n```\n%s\n```\n</ide_selection>",
		cmp.Or(a.DisplayName, a.FilePath), place, a.Text)
}

// images are what a model can be shown of all kinds.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (a attachment) image() bool { return slices.Contains(images, a.MIMEType) && len(a.Data) > 0 }

// blob is what the model reads of data that came with an input.
func (a attachment) blob() string {
	name := cmp.Or(a.DisplayName, "attachment")
	if !utf8.Valid(a.Data) {
		return fmt.Sprintf("<attachment name=%q type=%q>(%d bytes that are not text)</attachment>", name, a.MIMEType, len(a.Data))
	}
	return fmt.Sprintf("<attachment name=%q type=%q>\n%s\n</attachment>", name, a.MIMEType, a.Data)
}

// show adds the images that came with an input to its message, each under its
// name.
func show(m *model.Message, raw []json.RawMessage) {
	for _, a := range attachments(raw) {
		if a.Kind != "blob" || !a.image() {
			continue
		}
		if a.DisplayName != "" {
			m.Text += "\n" + a.DisplayName
		}
		m.Images = append(m.Images, model.Image{MediaType: a.MIMEType, Data: a.Data})
	}
}

// Dated says when something was said.
func Dated(text string, at time.Time) string {
	return dateOpen + event.FormatTime(at) + dateClose + text
}

const (
	dateOpen  = "<current_datetime>"
	dateClose = "</current_datetime>\n\n"
)

// ToolsGone tells the model that tools are no longer there.
func ToolsGone(names []string) string {
	return "<tools_changed_notice>\nTools no longer available: " + strings.Join(names, ", ") +
		"\n\nImportant: Do not attempt to call tools that are no longer available unless you've been notified that they're available again.\n</tools_changed_notice>"
}
