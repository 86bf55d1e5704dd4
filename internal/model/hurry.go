package model

import (
	"context"
	"time"
)

// hurryKey is the key of the time limit in a context.
type hurryKey struct{}

// WithHurry returns a context in which a provider that is asked about a model, and not
// for an answer, has to answer within d: somebody waits who can do without.
func WithHurry(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, hurryKey{}, d)
}

// Hurry returns the time that WithHurry has set, or zero.
func Hurry(ctx context.Context) time.Duration {
	d, _ := ctx.Value(hurryKey{}).(time.Duration)
	return d
}
