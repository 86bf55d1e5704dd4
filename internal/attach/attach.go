// Package attach turns files into attachments of a message: images, PDF documents and texts.
// The content of a file decides what it is, not its name.
package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits of files. Providers refuse larger ones.
const (
	MaxImage = 10 << 20
	MaxPDF   = 16 << 20
	MaxText  = 1 << 20
	MaxFile  = max(MaxImage, MaxPDF, MaxText)
	MaxAll   = 32 << 20 // bytes of all files of a message
	MaxFiles = 20       // files of a message
)

// The media types of files that are not images.
const (
	PDF  = "application/pdf"
	Text = "text/plain"
)

// A Blob is an attachment with its content, in the protocol's form.
type Blob struct {
	Type     string `json:"type"` // "blob"
	Data     []byte `json:"data"` // base64 in JSON
	MIMEType string `json:"mimeType"`
	Name     string `json:"displayName"`
}

// New returns the attachment of a file. The error says what is wrong with the file, and not which
// file it is.
func New(name string, content []byte) (Blob, error) {
	kind, most := kindOf(content)
	switch {
	case len(content) == 0:
		return Blob{}, errors.New("it is empty")
	case kind == "":
		return Blob{}, errors.New("it is neither an image (PNG, JPEG, GIF or WebP), a PDF document nor a text in UTF-8: convert it, or name it in the prompt, so that the agent uses its tools")
	case !fits(name, kind):
		return Blob{}, fmt.Errorf("it is named like another kind of file than it is (%s): rename or convert it", kind)
	case len(content) > most:
		return Blob{}, TooLarge(kind, most)
	}
	return Blob{Type: "blob", Data: content, MIMEType: kind, Name: path.Base(name)}, nil
}

// TooLarge returns the error of a file of a kind that has more bytes than it may have.
func TooLarge(kind string, most int) error {
	return fmt.Errorf("it has more than %d MiB, the most that is sent of a file of the type %s: make it smaller, or name it in the prompt, so that the agent uses its tools", most>>20, kind)
}

// kindOf returns the media type of a content and the largest size of such a file. The type is empty
// if no model can be sent it.
func kindOf(content []byte) (kind string, most int) {
	switch {
	case bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png", MaxImage
	case bytes.HasPrefix(content, []byte("\xff\xd8\xff")):
		return "image/jpeg", MaxImage
	case bytes.HasPrefix(content, []byte("GIF87a")), bytes.HasPrefix(content, []byte("GIF89a")):
		return "image/gif", MaxImage
	case len(content) >= 12 && string(content[:4]) == "RIFF" && string(content[8:12]) == "WEBP":
		return "image/webp", MaxImage
	case IsPDF(content):
		return PDF, MaxPDF
	case utf8.Valid(content) && !bytes.ContainsRune(content, 0):
		return Text, MaxText
	}
	return "", 0
}

// IsPDF reports whether a content is a PDF document, as far as its beginning and its end tell. One
// that was cut off is none.
func IsPDF(content []byte) bool {
	const ending = 2 << 10 // some programs write more after the end
	return bytes.HasPrefix(content, []byte("%PDF-")) && bytes.Contains(content[max(0, len(content)-ending):], []byte("%%EOF"))
}

// extensions are the endings of names that promise a kind of file.
var extensions = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".pdf": PDF,
}

// fits reports whether the name of a file does not promise another kind.
func fits(name, kind string) bool {
	promised := extensions[strings.ToLower(path.Ext(name))]
	return promised == "" || promised == kind || strings.HasPrefix(promised, "image/") && strings.HasPrefix(kind, "image/")
}

// Encode returns the attachments of a message in the protocol's form.
func Encode(list []Blob) ([]json.RawMessage, error) {
	all := 0
	raw := make([]json.RawMessage, len(list))
	for i, b := range list {
		if all += len(b.Data); all > MaxAll {
			return nil, fmt.Errorf("the files have more than %d MiB together: send fewer of them, or make them smaller", MaxAll>>20)
		}
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		raw[i] = text
	}
	if len(list) > MaxFiles {
		return nil, fmt.Errorf("there are more than %d files: send fewer of them", MaxFiles)
	}
	return raw, nil
}
