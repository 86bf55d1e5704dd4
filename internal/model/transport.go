package model

import (
	"context"
	"net/http"
)

type transportKey struct{}

// WithTransport returns a context in which requests to models are made by t,
// whatever the model would use by itself.
func WithTransport(ctx context.Context, t http.RoundTripper) context.Context {
	return context.WithValue(ctx, transportKey{}, t)
}

// Transport returns what makes the requests to models in this context, or nil if
// they are free to choose.
func Transport(ctx context.Context) http.RoundTripper {
	t, _ := ctx.Value(transportKey{}).(http.RoundTripper)
	return t
}
