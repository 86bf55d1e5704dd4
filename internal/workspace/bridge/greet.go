package bridge

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/abide-run/abide/internal/workspace"
)

// preface is how a client begins a connection of HTTP/2. A server answers it with a frame of
// settings, of which a header is read.
const (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	headerSize   = 9
	settingsType = 4
)

// greet returns a connection on which a server of HTTP/2 has answered. What forwards
// connections accepts them also while nobody listens behind it. As long as nobody has
// answered, no request is sent, so that a workspace that is not there was not asked.
func greet(ctx context.Context, conn net.Conn) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	answer := make([]byte, headerSize)
	_, err := io.WriteString(conn, preface)
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	switch {
	case !stop():
		err = context.Cause(ctx)
	case err != nil:
		err = fmt.Errorf("%w (%w)", errClosed, err)
	case answer[3] != settingsType:
		err = errors.New("whoever answers there is not a workspace")
	default:
		return &greetedConn{Conn: conn, answer: answer, sent: len(preface)}, nil
	}
	return nil, errors.Join(err, conn.Close())
}

// errClosed means that a connection was made and closed without an answer: nobody is behind
// what forwards it, or a server wants TLS.
var errClosed = errors.New("whoever is there closed the connection")

// A greetedConn is a connection whose preface was sent and whose first answer was read. The
// transport does both again.
type greetedConn struct {
	net.Conn
	answer []byte // bytes that were read already
	sent   int    // number of bytes that were sent already
}

func (c *greetedConn) Read(b []byte) (int, error) {
	if len(c.answer) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.answer)
	c.answer = c.answer[n:]
	return n, nil
}

func (c *greetedConn) Write(b []byte) (int, error) {
	skipped := min(c.sent, len(b))
	c.sent -= skipped
	if skipped == len(b) {
		return skipped, nil
	}
	n, err := c.Conn.Write(b[skipped:])
	return n + skipped, err
}

// shake returns a connection with TLS.
func shake(ctx context.Context, conn net.Conn, config *tls.Config) (net.Conn, error) {
	secure := tls.Client(conn, config)
	err := secure.HandshakeContext(ctx)
	if plain, is := errors.AsType[tls.RecordHeaderError](err); is && bytes.HasPrefix(plain.RecordHeader[:], []byte("HTTP/")) {
		err = workspace.ErrHasNoTLS
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// wantsTLS reports whether whoever accepts connections speaks TLS. Nothing is sent to it,
// so that it does not matter who it is.
func (d *patientDialer) wantsTLS(ctx context.Context) bool {
	conn, err := d.dial(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) == nil
}

// isMistake reports whether it is no use to try again: whoever answers does so in another
// way than the configuration says.
func isMistake(err error) bool {
	return errors.Is(err, workspace.ErrNeedsTLS) || errors.Is(err, workspace.ErrHasNoTLS) ||
		errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError))
}
