package files

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
)

// maxImage is the maximum size of an image: every provider accepts it in base64.
const maxImage = 15 << 20 / 4

// A picture is an image for the model, in the protocol's form.
type picture struct {
	Type        string `json:"type"`
	Data        []byte `json:"data"` // in base64
	MIMEType    string `json:"mimeType"`
	Description string `json:"description"`
}

// image returns an image for the model, unless it is too large.
func image(path string, shown workspace.Shown) (tool.Result, error) {
	if shown.Size > maxImage {
		return tool.Result{}, fail("File too large", "Image file is too large to view (%s). Maximum image size is %s. Make a smaller copy of it.", megabytes(shown.Size), megabytes(maxImage))
	}
	parts, err := json.Marshal([]picture{{"image", shown.Content, shown.Image, "Image file at path " + path}})
	return tool.Result{Text: "Viewed image file successfully.", Binary: parts}, err
}
