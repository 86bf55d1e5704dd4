package model

import (
	"context"
	"net/http"
)

// transportKey is the key of the transport in a context.
type transportKey struct{}

// WithTransport returns a context in which t makes the HTTP requests to models,
// instead of the transport of the model.
func WithTransport(ctx context.Context, t http.RoundTripper) context.Context {
	return context.WithValue(ctx, transportKey{}, t)
}

// Transport returns the transport that WithTransport has set, or nil.
func Transport(ctx context.Context) http.RoundTripper {
	t, _ := ctx.Value(transportKey{}).(http.RoundTripper)
	return t
}
