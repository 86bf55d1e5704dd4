package bridge

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/workspace"
)

// An explainer is an interceptor that lets ClientOptions.Explain say why a workspace
// cannot be used.
type explainer struct{ explain func(error) error }

func (x explainer) convert(ctx context.Context, err error) error {
	if err == nil || x.explain == nil || errors.Is(err, io.EOF) { // the end of a stream is no error
		return err
	}
	reason := fromWire(ctx, err)
	if !workspace.Unusable(reason) {
		return err
	}
	said := x.explain(reason)
	return &answer{said.Error(), said}
}

func (x explainer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		a, err := next(ctx, r)
		return a, x.convert(ctx, err)
	}
}

func (x explainer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return &explainedStream{next(ctx, spec), x, ctx}
	}
}

func (x explainer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// An explainedStream is a stream whose errors are explained.
type explainedStream struct {
	connect.StreamingClientConn
	x   explainer
	ctx context.Context
}

func (s *explainedStream) Receive(m any) error {
	return s.x.convert(s.ctx, s.StreamingClientConn.Receive(m))
}
