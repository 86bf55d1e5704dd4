// Package peer connects the servers that share a log with each other, and the relays of clients
// with them.
//
//   - Everything is encrypted with TLS 1.3.
//   - Both sides prove that they know the same secret, and neither sends it: the proof is a code
//     over a value that only the two ends of this TLS connection have. Who stands between them has
//     other connections with other values, and can pass no proof on. So the certificates need not
//     be trusted, and are made anew at each start.
//   - A connection is for one purpose, which the proof covers.
//
// The secret of servers is made of the key that they share. That of a client is its token, which has
// to be too long to be guessed: a false server sees a code that was made with it.
package peer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"time"
)

// A Purpose is what a connection is for.
type Purpose string

const (
	Server Purpose = "server" // requests of the protocol that another server passes on
	HTTP   Purpose = "http"   // requests over HTTP that another server passes on
	Client Purpose = "client" // the relay of a client
)

// Limits of time.
const (
	dialTime  = 3 * time.Second  // time until a server has to accept a connection
	greetTime = 10 * time.Second // time until both sides have proved who they are
	goneAfter = 10 * time.Second // time without a sign of life of the other machine
)

// ErrRefused means that the other side does not know the secret.
var ErrRefused = errors.New("the other side has another key or token")

// Dial connects to a server for a purpose.
func Dial(ctx context.Context, address string, p Purpose, secret []byte) (net.Conn, error) {
	conn, err := newDialer().DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}) // the proofs are what is trusted
	if err := within(ctx, conn, func() error { return introduce(ctx, secure, p, secret) }); err != nil {
		conn.Close()
		return nil, fmt.Errorf("server %s: %w", address, err)
	}
	return secure, nil
}

// newDialer returns a dialer whose connections end soon after the other machine is gone.
func newDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         dialTime,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3},
		ControlContext:  limitUnacknowledged,
	}
}

// within gives up a connection that takes too long.
func within(ctx context.Context, conn net.Conn, greet func() error) error {
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if err := conn.SetDeadline(time.Now().Add(greetTime)); err != nil {
		return err
	}
	if err := greet(); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// introduce says what the connection is for, proves that this side knows the secret, and checks that
// the other one does.
func introduce(ctx context.Context, conn *tls.Conn, p Purpose, secret []byte) error {
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	ours, theirs, err := proofs(conn, p, secret)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "abide %s %s\n", p, ours); err != nil {
		return err
	}
	line, err := readLine(conn)
	if errors.Is(err, io.EOF) || err == nil && !hmac.Equal([]byte(line), []byte(theirs)) {
		return ErrRefused
	}
	return err
}

// proofs returns what the side that connects sends, and what the other one answers.
func proofs(conn *tls.Conn, p Purpose, secret []byte) (first, answer string, err error) {
	state := conn.ConnectionState()
	bound, err := state.ExportKeyingMaterial("EXPORTER-abide-peer", nil, sha256.Size)
	if err != nil {
		return "", "", err
	}
	code := func(side string) string {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "abide peer %s %s ", side, p)
		mac.Write(bound)
		return hex.EncodeToString(mac.Sum(nil))
	}
	return code("dial"), code("accept"), nil
}

// A Door lets connections in.
type Door struct {
	config *tls.Config
	secret func(Purpose) []byte // nil for a purpose that nobody is let in for
}

// NewDoor returns a door. secret returns the secret of a purpose, and nil if nobody is let in for it.
func NewDoor(secret func(Purpose) []byte) (*Door, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
	return &Door{config, secret}, nil
}

// Admit checks who has connected, and what for.
func (d *Door) Admit(ctx context.Context, conn net.Conn) (secure net.Conn, p Purpose, err error) {
	encrypted := tls.Server(conn, d.config)
	err = within(ctx, conn, func() error {
		p, err = d.check(ctx, encrypted)
		return err
	})
	return encrypted, p, err
}

func (d *Door) check(ctx context.Context, conn *tls.Conn) (Purpose, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		return "", err
	}
	line, err := readLine(conn)
	if err != nil {
		return "", err
	}
	word, rest, _ := strings.Cut(line, " ")
	purpose, proof, _ := strings.Cut(rest, " ")
	secret := d.secret(Purpose(purpose))
	if word != "abide" || secret == nil {
		return "", ErrRefused
	}
	first, answer, err := proofs(conn, Purpose(purpose), secret)
	if err != nil {
		return "", err
	}
	if !hmac.Equal([]byte(proof), []byte(first)) {
		return "", ErrRefused
	}
	_, err = fmt.Fprintf(conn, "%s\n", answer)
	return Purpose(purpose), err
}

// maxLine is the maximum length of a line.
const maxLine = 256

// readLine reads a line byte by byte, so that nothing after it is read.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxLine; {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
	return "", errors.New("the line is too long")
}
