package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Result is the result of a call of a tool.
type Result struct {
	Text     string          // text for the model
	Contents json.RawMessage // all parts of the result, in the protocol's form
	Images   []Image
	Failed   bool // true if the server says that the call failed
}

// An Image is an image for the model.
type Image struct {
	Data     []byte
	MIMEType string
}

// maxImage is the maximum size of an image: every provider accepts it in base64.
const maxImage = 15 << 20 / 4

// resultOf converts the result of a call: its content, or the structured content if that is
// all there is.
func resultOf(r *sdk.CallToolResult) (Result, error) {
	made := Result{Failed: r.IsError}
	var texts []string
	for _, part := range r.Content {
		if text := made.add(part); text != "" {
			texts = append(texts, text)
		}
	}
	if len(r.Content) == 0 && r.StructuredContent != nil {
		text, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return made, err
		}
		texts = append(texts, string(text))
	}
	made.Text = strings.ToValidUTF8(strings.Join(texts, "\n"), "\uFFFD")
	var err error
	if len(r.Content) > 0 {
		made.Contents, err = json.Marshal(withoutData(r.Content))
	}
	return made, err
}

// add takes in a part of a result, and returns what the model reads of it.
func (r *Result) add(part sdk.Content) string {
	switch p := part.(type) {
	case *sdk.TextContent:
		return p.Text
	case *sdk.ImageContent:
		if len(p.Data) > maxImage {
			return fmt.Sprintf("(an image of %d bytes, which is too large to be shown)", len(p.Data))
		}
		r.Images = append(r.Images, Image{p.Data, p.MIMEType})
		return ""
	case *sdk.AudioContent:
		return fmt.Sprintf("(audio of the type %s with %d bytes, which cannot be played here)", p.MIMEType, len(p.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("(resource %s: %s)", p.URI, p.Name)
	case *sdk.EmbeddedResource:
		return resourceText(p.Resource)
	}
	return ""
}

// resourceText returns what a model reads of a resource.
func resourceText(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return ""
	case r.Text != "" || len(r.Blob) == 0:
		return r.Text
	}
	return fmt.Sprintf("(resource %s of the type %s with %d bytes)", r.URI, r.MIMEType, len(r.Blob))
}

// withoutData returns the parts of a result for people. Images and sounds are left out: the
// log has the images once, as the model sees them.
func withoutData(parts []sdk.Content) []sdk.Content {
	list := make([]sdk.Content, 0, len(parts))
	for _, part := range parts {
		switch p := part.(type) {
		case *sdk.ImageContent:
			part = &sdk.TextContent{Text: fmt.Sprintf("(image of the type %s with %d bytes)", p.MIMEType, len(p.Data))}
		case *sdk.AudioContent:
			part = &sdk.TextContent{Text: fmt.Sprintf("(audio of the type %s with %d bytes)", p.MIMEType, len(p.Data))}
		case *sdk.EmbeddedResource:
			if p.Resource != nil && len(p.Resource.Blob) > 0 {
				part = &sdk.TextContent{Text: resourceText(p.Resource)}
			}
		}
		list = append(list, part)
	}
	return list
}

// ForPages reports whether a server lets its pages call a tool (MCP Apps): unless it says who
// may, they may.
func ForPages(t *sdk.Tool) bool {
	ui, _ := t.Meta["ui"].(map[string]any)
	list, said := ui["visibility"].([]any)
	return !said || slices.Contains(list, any("app"))
}
