package transcript

import (
	"encoding/json"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// A picture is an image in the result of a call, in the protocol's form.
type picture struct {
	Type        string `json:"type"`
	Data        []byte `json:"data"` // base64 in JSON
	MIMEType    string `json:"mimeType"`
	Description string `json:"description"`
}

// pictures returns user messages with the images in a result. They come after the
// results, because most providers do not accept images in results.
func pictures(d event.ToolCompleteData) []*model.Message {
	var parts []picture
	if d.Result == nil || json.Unmarshal(d.Result.Binary, &parts) != nil {
		return nil
	}
	var list []*model.Message
	for _, p := range parts {
		if p.Type == "image" && len(p.Data) > 0 {
			list = append(list, &model.Message{
				Role: model.User, CallID: d.ToolCallID, Text: p.Description,
				Images: []model.Image{{MediaType: p.MIMEType, Data: p.Data}},
			})
		}
	}
	return list
}

// addImages inserts the images of a call after those of earlier calls.
func (n *entry) addImages(callID string, list []*model.Message) {
	place := func(id string) int {
		return slices.IndexFunc(n.message.Calls, func(c model.Call) bool { return c.ID == id })
	}
	at := slices.IndexFunc(n.images, func(m *model.Message) bool { return place(m.CallID) > place(callID) })
	if at < 0 {
		at = len(n.images)
	}
	n.images = slices.Insert(n.images, at, list...)
}

// Unseen returns the messages for a model that cannot see images: without images, and
// without messages that only contain one.
func Unseen(list []*model.Message) []*model.Message {
	sees := func(m *model.Message) bool { return len(m.Images) > 0 }
	if !slices.ContainsFunc(list, sees) {
		return list
	}
	kept := make([]*model.Message, 0, len(list))
	for _, m := range list {
		switch {
		case !sees(m):
			kept = append(kept, m)
		case m.CallID == "":
			kept = append(kept, &model.Message{Role: m.Role, Text: m.Text, Documents: m.Documents})
		}
	}
	return kept
}
