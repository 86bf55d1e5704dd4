package remote

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
)

// ReadsDocuments reports whether the model of a request reads documents on its wire.
func (q *Query) ReadsDocuments() bool {
	as := q.As()
	if !q.documents {
		return false
	}
	can := catalog.Of(q.Request)
	return as.AnyModelReads || can.Vision || !can.Known
}

// ReadsDocuments reports whether a model of the provider reads documents. can overrides
// what is known of the model; it may be nil.
func (c *Client) ReadsDocuments(name string, can *model.Capabilities) bool {
	return c.query(&model.Request{Model: name, Can: can}, false).ReadsDocuments()
}

// checkDocuments returns an error if the newest message of the user has a document that
// the provider does not read. Older ones may be there because another model was asked:
// the model is told of those in words.
func (c *Client) checkDocuments(q *Query) error {
	newest := newestInput(q.Messages)
	if newest == nil {
		return nil
	}
	for _, d := range newest.Documents {
		name := cmp.Or(d.Name, "the document")
		switch {
		case d.MediaType != model.PDF:
			return refusedDocument("%s is of the type %q, and models read PDF documents alone; convert it, or send its text", name, d.MediaType)
		case !q.documents:
			return refusedDocument("%s cannot be sent: the provider at %s reads no documents on the wire %s (profile %s); send its text or pictures of its pages, or choose another provider or wire", name, q.Host, c.wire.Name, q.As().Name)
		case !q.ReadsDocuments():
			return refusedDocument("%s cannot be sent: the model %s sees no pictures, and so no documents; choose another model, or send the text", name, q.Model)
		}
	}
	return nil
}

func refusedDocument(format string, args ...any) error {
	return &model.Error{Kind: model.KindRequest, Message: fmt.Sprintf(format, args...)}
}

// newestInput returns the newest message that a person has written, or nil.
func newestInput(messages []*model.Message) *model.Message {
	for _, m := range slices.Backward(messages) {
		if m.Role == model.User && m.CallID == "" {
			return m
		}
	}
	return nil
}

// FitDocument reports whether a document can be sent in q.
func (q *Query) FitDocument(d model.Document) bool {
	return d.MediaType == model.PDF && q.ReadsDocuments()
}

// Unread returns the text that a model gets instead of a document that it cannot read.
func Unread(d model.Document) string {
	return "(the document " + cmp.Or(d.Name, "without a name") + " of type " + d.MediaType + ", which this model cannot read)"
}

// FileName returns the name of a document for a provider that wants one.
func FileName(d model.Document) string { return cmp.Or(d.Name, "document.pdf") }
