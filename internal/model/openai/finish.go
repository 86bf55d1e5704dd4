package openai

import (
	"cmp"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// finishes maps finish reasons of providers, in small letters, to those of package model.
// Servers that speak this wire for models of others often pass the words of those on.
var finishes = map[string]string{
	model.FinishStop:       model.FinishStop,
	model.FinishCalls:      model.FinishCalls,
	"function_call":        model.FinishCalls,
	model.FinishLength:     model.FinishLength,
	"model_length":         model.FinishLength, // Mistral: the window is full
	"max_tokens":           model.FinishLength,
	"max_output_tokens":    model.FinishLength,
	model.FinishFilter:     model.FinishFilter,
	"content_filtered":     model.FinishFilter, // Bedrock, as guardrail_intervened
	"guardrail_intervened": model.FinishFilter,
	"safety":               model.FinishFilter, // Gemini, as the following
	"recitation":           model.FinishFilter,
	"blocklist":            model.FinishFilter,
	"prohibited_content":   model.FinishFilter,
	"spii":                 model.FinishFilter,
	"image_safety":         model.FinishFilter,
	model.FinishRefusal:    model.FinishRefusal,
}

// finishOf returns the finish reason of package model for that of a provider. A reason that
// is not known stays as it is.
func finishOf(reason string) string {
	return cmp.Or(finishes[strings.ToLower(reason)], reason)
}

// failed returns the error of a choice that the provider could not complete. It says so in
// the finish reason, where other providers send an error.
func (c *choice) failed() error {
	switch c.Finish {
	case "error", "insufficient_system_resource", "abort":
		return &remote.Failure{Message: "the model was interrupted with the finish reason " + c.Finish, Type: "overloaded"}
	}
	return nil
}

// Reply implements remote.Decoder. What the provider wants back is in its opaque
// reasoning. Some providers end every reply with "stop": what it
// contains tells then what the model wanted.
func (b *builder) Reply() *model.Reply {
	r := b.Draft.Reply()
	switch {
	case r.Finish != model.FinishStop:
	case len(r.Calls) > 0:
		r.Finish = model.FinishCalls
	case b.refused:
		r.Finish = model.FinishRefusal
	}
	b.keepState(r)
	return r
}
