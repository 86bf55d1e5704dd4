package daemon

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/provider"
)

// A configuredModel applies the settings of a model to its requests, and adds the cost
// to its replies.
type configuredModel struct {
	model.Model
	name      string
	can       model.Capabilities
	maxOutput int    // default of requests that do not set it
	effort    string // default reasoning effort of requests that do not set it
	stream    bool   // true if replies are always streamed from the provider

	temperature, topP *float64 // defaults of requests that do not set them
}

// configure returns a model of a provider with its settings.
func configure(m model.Model, p provider.Provider, name string) model.Model {
	t := configuredModel{Model: m, name: name, can: Capabilities(p, name), maxOutput: p.MaxOutputTokens}
	if t.can.Known && t.maxOutput > 0 {
		t.maxOutput = min(t.maxOutput, t.can.MaxOutput)
	}
	if p.Abide != nil && (t.can.Reasoning || !t.can.Known) {
		t.effort = p.Abide.ReasoningEffort
	}
	if p.Abide != nil {
		own := p.Abide.Models[name]
		t.temperature, t.topP = own.Temperature, own.TopP
	}
	// A request without data for a while is ended, and a long reply that is not
	// streamed sends no data. Not all Chat Completions servers stream well.
	wire, _ := Wires.Find(p.Type, p.WireAPI) // an unknown one has no models
	t.stream = wire.Streams
	return t
}

func (t configuredModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	own := *req
	own.Can = &t.can
	own.MaxOutput = cmp.Or(req.MaxOutput, t.maxOutput)
	own.ReasoningEffort = cmp.Or(req.ReasoningEffort, t.effort)
	own.Temperature, own.TopP = cmp.Or(req.Temperature, t.temperature), cmp.Or(req.TopP, t.topP)
	if on == nil && t.stream {
		on = func(model.Delta) {}
	}
	reply, err := t.Model.Ask(ctx, &own, on)
	if err == nil {
		reply.Cost, reply.Another = t.costOf(reply.Usage), catalog.Another(t.name, reply.Model)
	}
	return reply, err
}

// costOf returns the price of a reply; nil if it is not known. What the provider has not
// counted has no price, unless the model is free.
func (t configuredModel) costOf(u model.Usage) *float64 {
	price := t.can.Price
	if price == nil || u == (model.Usage{}) && *price != (model.Price{}) {
		return nil
	}
	return new(price.Cost(u))
}

// ModelSettings are the configured settings of models, for providers that bring none along.
type ModelSettings struct {
	MaxOutput int
	Models    map[string]provider.Limits
	Silence   time.Duration // longest time without data of an answer; the default of the wires if zero
}

// on adds the settings to a provider that brings none along.
func (w ModelSettings) on(p provider.Provider) provider.Provider {
	if p.Abide == nil {
		p.Abide = &provider.Settings{Models: w.Models}
		p.MaxOutputTokens = cmp.Or(p.MaxOutputTokens, w.MaxOutput)
	}
	return p
}

// withWindow adds the window that a provider reports for a model, unless the settings have
// one.
func withWindow(p provider.Provider, name string, window int) provider.Provider {
	limits := p.Abide.Models[name]
	if window == 0 || limits.Window > 0 {
		return p
	}
	limits.Window = window
	own := *p.Abide
	own.Models = maps.Clone(own.Models)
	if own.Models == nil {
		own.Models = make(map[string]provider.Limits)
	}
	own.Models[name] = limits
	p.Abide = &own
	return p
}

// Capabilities returns the capabilities of a model: those of the catalog, overridden by
// the settings of the provider.
func Capabilities(p provider.Provider, name string) model.Capabilities {
	can, _ := catalog.Lookup(name)
	var limits provider.Limits
	if p.Abide != nil {
		limits = p.Abide.Models[name]
	}
	can.Window = cmp.Or(limits.Window, can.Window)
	if can.MaxOutput = cmp.Or(limits.MaxOutput, can.MaxOutput); can.MaxOutput >= can.Window {
		can.MaxOutput = can.Window / 2 // the request needs space in the window as well
	}
	if p.MaxPromptTokens > 0 {
		can.Window = p.MaxPromptTokens + can.MaxOutput
	}
	if limits.Vision != nil {
		can.Vision = *limits.Vision
	}
	if limits.Reasoning != nil {
		can.Reasoning, can.Known = *limits.Reasoning, true
	}
	can.Price = price(can.Price, limits)
	return can
}

// blind reports whether a model is known not to accept images. An unknown model gets
// images: users can turn that off in the configuration.
func blind(p provider.Provider, name string) bool {
	if p.Abide != nil {
		if sees := p.Abide.Models[name].Vision; sees != nil {
			return !*sees
		}
	}
	can, known := catalog.Lookup(name)
	return known && !can.Vision
}

// price returns the price of a model; nil if a part of it is not known, because a cost
// is shown only if it is right. The default price of cached tokens is that of input.
func price(known *model.Price, l provider.Limits) *model.Price {
	if known == nil && (l.Input == nil || l.Output == nil) {
		return nil
	}
	var p model.Price
	if known != nil {
		p = *known
	}
	if l.Input != nil || l.Output != nil || l.CacheRead != nil || l.CacheWrite != nil {
		p.Long = nil // a price that is configured does not depend on the length of a request
	}
	set(&p.Input, l.Input)
	set(&p.Output, l.Output)
	if known == nil || l.Input != nil {
		p.CacheRead, p.CacheWrite = p.Input, p.Input
	}
	set(&p.CacheRead, l.CacheRead)
	set(&p.CacheWrite, l.CacheWrite)
	return &p
}

func set(to, value *float64) {
	if value != nil {
		*to = *value
	}
}
