package bridge_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// accepted returns a connection that was accepted by something which forwards it, and
// closed because nobody is behind it.
func accepted() net.Conn {
	near, far := net.Pipe()
	go func() {
		_, _ = io.ReadFull(far, make([]byte, 1))
		_ = far.Close()
	}()
	return near
}

// SSH and the proxies of containers accept connections also while no workspace listens
// behind them. Nothing was asked of a workspace then, and it is waited for.
func TestAConnectionThatNobodyAnswersIsNoConnection(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			server := &bridge.Server{}
			o := bridge.ClientOptions{Patience: time.Minute}
			if secure {
				server.TLS, o.TLS = bridgetest.Certificates(t)
				now := time.Now() // the clock of the bubble is before the certificate
				o.TLS.ServerName, o.TLS.Time = "127.0.0.1", func() time.Time { return now }
			}
			synctest.Test(t, func(t *testing.T) {
				m, back := new(bridgetest.Memory), make(chan struct{})
				server.Workspace = local.New(t.TempDir(), nil)
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error)
				go func() { served <- server.Serve(ctx, m.Listen()) }()
				o.Dial = func(ctx context.Context) (net.Conn, error) {
					select {
					case <-back:
						return m.Dial(ctx)
					default:
						return accepted(), nil
					}
				}
				c := client(t, o)
				write := func() error {
					return c.Workspace().Files.WriteFile(t.Context(), workspace.At("f"), []byte("x"), workspace.WriteOptions{})
				}
				began := time.Now()
				err := write()
				if waited := time.Since(began); !errors.Is(err, workspace.ErrAway) || errors.Is(err, workspace.ErrLost) || waited < 55*time.Second || waited > time.Minute {
					t.Errorf("after %s: %v", waited, err)
				}
				if made := c.Made(); made != 0 {
					t.Errorf("%d connections were made", made)
				}
				time.AfterFunc(40*time.Second, func() { close(back) })
				must(t, write())
				must(t, c.Close())
				stop()
				must(t, <-served)
			})
		})
	}
}

// Whoever accepts connections and stays silent does not get a request either.
func TestAConnectionThatStaysSilentIsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept []net.Conn
		c := client(t, bridge.ClientOptions{Token: "secret", Dial: func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			kept = append(kept, far)
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near, nil
		}, Retries: []time.Duration{}})
		began := time.Now()
		_, err := c.Describe(t.Context())
		if took := time.Since(began); !errors.Is(err, workspace.ErrAway) || took > 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		must(t, c.Close())
		for _, conn := range kept {
			must(t, conn.Close())
		}
	})
}

func TestAMistakeAboutTLSIsNamedAtOnce(t *testing.T) {
	serverTLS, clientTLS := bridgetest.Certificates(t)
	for name, c := range map[string]struct {
		server, client *tls.Config
		want           error
	}{
		"the workspace alone uses it": {serverTLS, nil, workspace.ErrNeedsTLS},
		"the client alone uses it":    {nil, clientTLS, workspace.ErrHasNoTLS},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			server := &bridge.Server{Workspace: local.New(t.TempDir(), nil), TLS: c.server}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error)
			go func() { served <- server.Serve(ctx, l) }()
			client := client(t, bridge.ClientOptions{Address: "tcp:" + l.Addr().String(), TLS: c.client, Patience: time.Hour})
			_, err = client.Describe(t.Context())
			if !errors.Is(err, c.want) || !workspace.Unusable(err) {
				t.Errorf("%v", err)
			}
			err = client.Workspace().Files.WriteFile(t.Context(), workspace.At("f"), nil, workspace.WriteOptions{})
			if !errors.Is(err, c.want) || errors.Is(err, workspace.ErrLost) {
				t.Errorf("%v", err)
			}
			must(t, client.Close())
			stop()
			must(t, <-served)
		})
	}
}
