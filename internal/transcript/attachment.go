package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/attach"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// An attachment is something that a client sends with an input, in the protocol's form.
// Its kind decides which of its fields are used.
type attachment struct {
	Kind        string `json:"type"`
	Path        string `json:"path"`     // path of a file or a directory
	FilePath    string `json:"filePath"` // path of the file of a selection
	DisplayName string `json:"displayName"`
	Lines       *struct {
		Start, End int
	} `json:"lineRange"`
	Text      string `json:"text"`
	Selection struct {
		Start, End struct{ Line int }
	} `json:"selection"`
	Data     []byte `json:"data"` // content of a blob, base64 in JSON
	MIMEType string `json:"mimeType"`

	// These fields are used by a reference to something on GitHub.
	Number        int    `json:"number"`
	Title         string `json:"title"`
	State         string `json:"state"`
	ReferenceType string `json:"referenceType"`
	URL           string `json:"url"`
}

// attachments decodes attachments, and ignores invalid ones.
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

// CountFunc returns the number of lines of a file, or the number of entries of a folder. It
// reports false if the number is not known.
type CountFunc func(path string) (count int, known bool)

// Completed adds the fields to attachments that clients may leave out, but that typed
// clients require in events: a name and a selection.
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
	text, _ := json.Marshal(fields) // the value was decoded from JSON
	return text
}

// nameOf returns the last element of a path with slashes or backslashes.
func nameOf(path any) string {
	text, _ := path.(string)
	return text[strings.LastIndexAny(text, `/\`)+1:]
}

// gap separates the words of a person from what the runtime adds.
const gap = "\n\n\n\n"

// Reads returns the text that the model reads of an input: the words of the person, and
// a description of the attachments. Files are only named, because the model has tools to
// read them. Images and documents are not included.
func Reads(said string, raw []json.RawMessage, look CountFunc) string {
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
			if !a.image() && !a.document() {
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

// block returns lines inside an element of the given name, or "" if there are none.
func block(name string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	if name == "tagged_files" {
		for i := range lines {
			lines[i] = "* " + lines[i]
		}
	}
	return fmt.Sprintf("<%s>\n%s\n</%s>", name, within(name, strings.Join(lines, "\n")), name)
}

// within returns a text that stands in an element of the given name and cannot end it: what is
// attached must not go on as if the user was speaking.
func within(name, text string) string {
	return strings.ReplaceAll(text, "</"+name+">", `<\`+name+">")
}

func counted(path string, look CountFunc, format string, args ...any) string {
	n, ok := look(path)
	if !ok {
		return path
	}
	return path + " " + fmt.Sprintf(format, append(args, n)...)
}

func (a attachment) file(look CountFunc) string {
	switch {
	case a.Lines == nil:
		return counted(a.Path, look, "(%d lines)")
	case a.Lines.Start == a.Lines.End:
		return counted(a.Path, look, "(line %d of %d lines)", a.Lines.Start)
	}
	return counted(a.Path, look, "(lines %d-%d of %d lines)", a.Lines.Start, a.Lines.End)
}

// selection describes the selected text in an editor, which counts lines from zero.
func (a attachment) selection() string {
	first, last := a.Selection.Start.Line+1, a.Selection.End.Line+1
	place := fmt.Sprintf("line %d", first)
	if last > first {
		place = fmt.Sprintf("lines %d-%d", first, last)
	}
	return fmt.Sprintf("<ide_selection>\nThe user has the following text selected in their IDE. This may or may not be related to their request.\nFile: %s (%s)\n```\n%s\n```\n</ide_selection>",
		within("ide_selection", cmp.Or(a.DisplayName, a.FilePath)), place, within("ide_selection", a.Text))
}

// images lists the media types of images that models can see.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (a attachment) image() bool { return slices.Contains(images, a.MIMEType) && len(a.Data) > 0 }

// document reports whether the attachment is a document that models can read.
func (a attachment) document() bool { return a.MIMEType == model.PDF && attach.IsPDF(a.Data) }

// blob returns the text that the model reads of a blob.
func (a attachment) blob() string {
	name := within("attachment", cmp.Or(a.DisplayName, "attachment"))
	if !utf8.Valid(a.Data) {
		return fmt.Sprintf("<attachment name=%q type=%q>(%d bytes that are not text)</attachment>", name, within("attachment", a.MIMEType), len(a.Data))
	}
	return fmt.Sprintf("<attachment name=%q type=%q>\n%s\n</attachment>", name, within("attachment", a.MIMEType), within("attachment", string(a.Data)))
}

// Needs reports whether a model has to see images or to read documents, in order to know all
// attachments.
func Needs(raw []json.RawMessage) (images, documents bool) {
	for _, a := range attachments(raw) {
		images = images || a.Kind == "blob" && a.image()
		documents = documents || a.Kind == "blob" && a.document()
	}
	return images, documents
}

// attachImages adds the images and documents among the attachments to a message, and the names of
// the images to its text.
func attachImages(m *model.Message, raw []json.RawMessage) {
	for _, a := range attachments(raw) {
		if a.Kind == "blob" && a.document() {
			m.Documents = append(m.Documents, model.Document{Name: a.DisplayName, MediaType: a.MIMEType, Data: a.Data})
		}
		if a.Kind != "blob" || !a.image() {
			continue
		}
		if a.DisplayName != "" {
			m.Text += "\n" + a.DisplayName
		}
		m.Images = append(m.Images, model.Image{MediaType: a.MIMEType, Data: a.Data})
	}
}

// Dated returns a text with the time of a message before it.
func Dated(text string, at time.Time) string {
	return dateOpen + event.FormatTime(at) + dateClose + text
}

const (
	dateOpen  = "<current_datetime>"
	dateClose = "</current_datetime>\n\n"
)

// ToolsGone returns the notice that tools are no longer available.
func ToolsGone(names []string) string {
	return "<tools_changed_notice>\nTools no longer available: " + strings.Join(names, ", ") +
		"\n\nImportant: Do not attempt to call tools that are no longer available unless you've been notified that they're available again.\n</tools_changed_notice>"
}
