// Package bridgetest connects a test to its workspace over a bridge.
package bridgetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// Over serves a workspace and returns a client's view of it, over the network "memory",
// "unix" or "tcp", the last with TLS and a token. Both ends are closed at the end of the
// test.
func Over(t testing.TB, network string, ws workspace.Workspace) workspace.Workspace {
	t.Helper()
	return Connect(t, network, ws).Workspace()
}

// Connect is Over for tests that need the client.
func Connect(t testing.TB, network string, ws workspace.Workspace) *bridge.Client {
	t.Helper()
	server := &bridge.Server{Workspace: ws}
	l, o := connection(t, network, server)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	c, err := bridge.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

// connection returns a listener for a server and the options of its clients.
func connection(t testing.TB, network string, server *bridge.Server) (net.Listener, bridge.ClientOptions) {
	t.Helper()
	var o bridge.ClientOptions
	address := filepath.Join(t.TempDir(), "sock")
	switch network {
	case "memory":
		m := new(Memory)
		return m.Listen(), bridge.ClientOptions{Dial: m.Dial}
	case "tcp":
		address = "127.0.0.1:0"
		server.Token, o.Token = "a secret", "a secret"
		server.TLS, o.TLS = Certificates(t)
	}
	l, err := net.Listen(network, address)
	must(t, err)
	o.Address = network + ":" + l.Addr().String()
	return l, o
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Certificates returns the configuration of a server, and of a client that trusts it.
func Certificates(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	return CertificatesFor(t, time.Now())
}

// CertificatesFor is Certificates with a certificate that is valid for an hour around a time.
func CertificatesFor(t testing.TB, now time.Time) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "workspace"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	believed := x509.NewCertPool()
	believed.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: believed, ServerName: "127.0.0.1"}
}

// Memory is a network in memory, with one listener at a time.
type Memory struct {
	mu  sync.Mutex
	now *listener
}

type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a new listener, to which Dial connects from now on.
func (m *Memory) Listen() net.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return m.now
}

// Dial connects to the listener.
func (m *Memory) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	l := m.now
	m.mu.Unlock()
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.New("nobody listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }
