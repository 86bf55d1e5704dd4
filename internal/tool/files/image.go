package files

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/abide-run/abide/internal/tool"
)

// maxImage is the maximum size of an image: every provider accepts it in base64.
const maxImage = 15 << 20 / 4

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

// A picture is an image for the model, in the protocol's form.
type picture struct {
	Type        string `json:"type"`
	Data        []byte `json:"data"` // in base64
	MIMEType    string `json:"mimeType"`
	Description string `json:"description"`
}

func image(path, kind string, r io.Reader, size int64) (tool.Result, error) {
	if size > maxImage {
		return tool.Result{}, fail("File too large", "Image file is too large to view (%s). Maximum image size is %s. Make a smaller copy of it.", megabytes(size), megabytes(maxImage))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxImage))
	if err != nil {
		return tool.Result{}, unusable(path, err)
	}
	parts, err := json.Marshal([]picture{{"image", data, kind, "Image file at path " + path}})
	return tool.Result{Text: "Viewed image file successfully.", Binary: parts}, err
}
