package openai

import (
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// finishes maps finish reasons of providers to those of package model. The others are the
// same.
var finishes = map[string]string{
	"function_call": model.FinishCalls,
	"model_length":  model.FinishLength, // Mistral: the window is full
	"max_tokens":    model.FinishLength,
	"safety":        model.FinishFilter,
	"SAFETY":        model.FinishFilter,
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
