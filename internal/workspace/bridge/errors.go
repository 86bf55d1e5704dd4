package bridge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// reasons are the errors that keep their meaning on the wire.
var reasons = []struct {
	err  error
	code connect.Code
	name string
}{
	{fs.ErrNotExist, connect.CodeNotFound, "not_exist"},
	{fs.ErrExist, connect.CodeAlreadyExists, "exist"},
	{fs.ErrPermission, connect.CodePermissionDenied, "permission"},
	{fs.ErrInvalid, connect.CodeInvalidArgument, "invalid"},
	{fs.ErrClosed, connect.CodeFailedPrecondition, "closed"},
	{workspace.ErrLink, connect.CodeFailedPrecondition, "link"},
	{workspace.ErrFolder, connect.CodeFailedPrecondition, "folder"},
	{workspace.ErrNotFolder, connect.CodeFailedPrecondition, "not_folder"},
	{workspace.ErrNotEmpty, connect.CodeFailedPrecondition, "not_empty"},
	{workspace.ErrSpecial, connect.CodeFailedPrecondition, "special"},
	{workspace.ErrTooLarge, connect.CodeResourceExhausted, "too_large"},
	{workspace.ErrTooMany, connect.CodeResourceExhausted, "too_many"},
	{workspace.ErrOutside, connect.CodeFailedPrecondition, "outside"},
	{protect.ErrMoved, connect.CodeFailedPrecondition, "changed_again"},
	{protect.ErrNotKept, connect.CodeFailedPrecondition, "not_kept"},
	{workspace.ErrMoved, connect.CodeFailedPrecondition, "moved"},
	{scope.ErrChanged, connect.CodeFailedPrecondition, "changed"},
	{scope.ErrSpecial, connect.CodeFailedPrecondition, "not_regular"},
	{scope.ErrTooLarge, connect.CodeResourceExhausted, "larger_than_wanted"},
	{syscall.EISDIR, connect.CodeFailedPrecondition, "directory"},
	{syscall.ENOSPC, connect.CodeResourceExhausted, "no_space"},
	{syscall.EDQUOT, connect.CodeResourceExhausted, "quota"},
	{syscall.EROFS, connect.CodeFailedPrecondition, "read_only"},
	{workspace.ErrOther, connect.CodeFailedPrecondition, "other_workspace"},
	{workspace.ErrProtocol, connect.CodeFailedPrecondition, "other_protocol"},
	{workspace.ErrFenced, connect.CodeFailedPrecondition, "fenced"},
	{process.ErrNotFound, connect.CodeNotFound, "no_process"},
	{process.ErrNoOwner, connect.CodePermissionDenied, "no_owner"},
	{process.ErrConflict, connect.CodeAlreadyExists, "conflict"},
	{process.ErrInvalid, connect.CodeInvalidArgument, "invalid_request"},
	{process.ErrEnded, connect.CodeFailedPrecondition, "ended"},
	{process.ErrNoStdin, connect.CodeFailedPrecondition, "no_stdin"},
	{process.ErrNoTerminal, connect.CodeFailedPrecondition, "no_terminal"},
	{process.ErrDropped, connect.CodeFailedPrecondition, "dropped"},
	{process.ErrClosed, connect.CodeUnavailable, "closing"},
	{process.ErrUnsupported, connect.CodeUnimplemented, "unsupported"},
}

// toWire converts an error to one for the wire. No other function does that.
func toWire(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return detailed(connect.CodeCanceled, err, nil)
	case errors.Is(err, context.DeadlineExceeded):
		return detailed(connect.CodeDeadlineExceeded, err, nil)
	}
	var start *process.StartError
	var full *process.CapError
	switch {
	case errors.As(err, &start):
		return detailed(connect.CodeFailedPrecondition, err, &pb.NotStarted{Id: string(start.ID), Reason: []byte(start.Reason)})
	case errors.As(err, &full):
		return detailed(connect.CodeResourceExhausted, err, &pb.CapReached{What: full.What, Has: full.Has, Cap: full.Cap, Reserved: full.Reserved, Wants: full.Wants})
	}
	return detailed(codeOf(err), err, reasonTo(err))
}

// codeOf returns the code of an error.
func codeOf(err error) connect.Code {
	if errors.As(err, new(*scope.Refusal)) {
		return connect.CodePermissionDenied
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.code
		}
	}
	return connect.CodeUnknown
}

// reasonName returns the name of an error on the wire; empty if it has none.
func reasonName(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return ""
}

// knownReason returns the error with a name; nil if there is none.
func knownReason(name string) error {
	for _, r := range reasons {
		if r.name == name {
			return r.err
		}
	}
	return nil
}

func detailed(code connect.Code, err error, m proto.Message) error {
	e := connect.NewError(code, plain{err})
	if m == nil {
		return e
	}
	if detail, err := connect.NewErrorDetail(m); err == nil {
		e.AddDetail(detail)
	}
	return e
}

// plain is an error whose text is valid UTF-8, as the wire requires.
type plain struct{ error }

func (p plain) Error() string { return strings.ToValidUTF8(p.error.Error(), "\uFFFD") }

func (p plain) Unwrap() error { return p.error }

// An answer is an error that the workspace returned.
type answer struct {
	text string
	is   error // error that errors.Is and errors.As find; may be nil
}

func (a *answer) Error() string { return a.text }

func (a *answer) Unwrap() error { return a.is }

// fromWire converts an error from the wire to the one that the workspace returned.
func fromWire(ctx context.Context, err error) error {
	var e *connect.Error
	var known *answer
	var gone *away
	var without *unasked
	switch {
	case err == nil:
		return nil
	case errors.As(err, &without):
		return without.error
	case errors.Is(err, errMoreThanAsked):
		return errMoreThanAsked
	case errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &gone):
		return gone
	case errors.Is(err, workspace.ErrNeedsTLS), errors.Is(err, workspace.ErrHasNoTLS):
		return err
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)):
		return untrusted(err)
	case errors.As(err, &e) && e.Code() == connect.CodeResourceExhausted && !connect.IsWireError(err):
		return &answer{e.Message(), workspace.ErrTooLarge} // the answer exceeds maxMessage
	case e != nil && e.Code() == connect.CodeUnimplemented && len(e.Details()) == 0: // also the status 404
		return otherProtocol("it does not know what it is asked, and is likely older than this engine; update the workspace")
	case e == nil || !connect.IsWireError(err):
		return &lost{err}
	case e.Code() == connect.CodeUnavailable:
		return &lost{err}
	}
	return answerOf(e)
}

// untrusted returns the error of a certificate that cannot be checked. A certificate that is
// not valid now may be a good one, if a clock is wrong.
func untrusted(err error) error {
	text := workspace.ErrCertificate.Error() + " (" + err.Error() + ")"
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		text += "; compare the clocks of both machines, or renew the certificate"
	}
	return &answer{text, workspace.ErrCertificate}
}

// answerOf returns the error that the workspace returned.
func answerOf(e *connect.Error) error {
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if r, ok := m.(*pb.Reason); ok && len(r.GetText()) > 0 {
				return errorOf(r)
			}
		}
	}
	return &answer{brief(e.Message()), reasonOf(e)}
}

func reasonOf(e *connect.Error) error {
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if reason := errorFor(m); reason != nil {
				return reason
			}
		}
	}
	return codes[e.Code()]
}

// codes are the meanings of errors that have no details.
var codes = map[connect.Code]error{
	connect.CodeUnauthenticated:  workspace.ErrToken,
	connect.CodeCanceled:         context.Canceled,
	connect.CodeDeadlineExceeded: context.DeadlineExceeded,
}

// errorFor returns the error that a detail stands for, or nil.
func errorFor(detail proto.Message) error {
	switch d := detail.(type) {
	case *pb.NotStarted:
		return &process.StartError{ID: process.ID(brief(d.GetId())), Reason: brief(string(d.GetReason()))}
	case *pb.CapReached:
		return &process.CapError{What: brief(d.GetWhat()), Has: d.GetHas(), Reserved: d.GetReserved(), Wants: d.GetWants(), Cap: d.GetCap()}
	case *pb.Reason:
		return knownReason(d.GetName())
	}
	return nil
}

// A lost is the error of a workspace that cannot be reached.
type lost struct{ err error }

func (l *lost) Error() string { return workspace.ErrLost.Error() + " (" + l.err.Error() + ")" }

func (l *lost) Unwrap() []error { return []error{workspace.ErrLost, l.err} }

// An away is the error of a workspace to which no connection could be made.
type away struct {
	err   error
	final bool // true if it is no use to try again: the request has waited, or does not want to
}

func (a *away) Error() string { return workspace.ErrAway.Error() + " (" + a.err.Error() + ")" }

func (a *away) Unwrap() []error { return []error{workspace.ErrAway, a.err} }
