package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
)

// listen serves a door, and says what it has decided about each connection.
func listen(t *testing.T, d *Door) (address string, decided chan Purpose) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	decided = make(chan Purpose, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			secure, p, err := d.Admit(context.Background(), conn)
			if err == nil {
				_, _ = io.WriteString(secure, "hello") // the test reads it
			} else {
				p = "refused"
			}
			decided <- p
			secure.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String(), decided
}

func newDoor(t *testing.T, secrets map[Purpose]string) *Door {
	t.Helper()
	d, err := NewDoor(func(p Purpose) []byte {
		if s, known := secrets[p]; known {
			return []byte(s)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBothSidesProveThatTheyKnowTheSecret(t *testing.T) {
	address, decided := listen(t, newDoor(t, map[Purpose]string{Server: "key", Client: "token"}))
	for _, test := range []struct {
		purpose Purpose
		secret  string
		in      bool
	}{{Server, "key", true}, {Client, "token", true}, {Server, "token", false}, {Client, "key", false}, {HTTP, "key", false}, {HTTP, "", false}, {Server, "", false}} {
		conn, err := Dial(t.Context(), address, test.purpose, []byte(test.secret))
		if got := <-decided; test.in != (got == test.purpose) {
			t.Errorf("%s with %q: %s", test.purpose, test.secret, got)
		}
		if !test.in {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%s with %q: %v", test.purpose, test.secret, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(conn); err != nil || string(b) != "hello" {
			t.Errorf("%s: %q, %v", test.purpose, b, err)
		}
		conn.Close()
	}
}

// A server that does not know the secret cannot pretend to.
func TestAFalseServerIsNotTrusted(t *testing.T) {
	address, _ := listen(t, newDoor(t, map[Purpose]string{Server: "another key"}))
	if _, err := Dial(t.Context(), address, Server, []byte("key")); !errors.Is(err, ErrRefused) {
		t.Errorf("a server with another key: %v", err)
	}
}

// Who stands between has one connection to each side, and what one side proves is worth nothing at
// the other.
func TestWhoStandsBetweenCanPassNoProofOn(t *testing.T) {
	address, decided := listen(t, newDoor(t, map[Purpose]string{Server: "key"}))
	between, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		conn, err := between.Accept()
		if err == nil {
			err = passOn(conn, address)
		}
		ended <- err
	}()
	if _, err := Dial(t.Context(), between.Addr().String(), Server, []byte("key")); err == nil {
		t.Error("the connection is trusted")
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := <-decided; got != "refused" {
		t.Error("the proof of another connection is accepted")
	}
	between.Close()
}

// passOn ends the TLS of a connection, and begins it anew with a server.
func passOn(conn net.Conn, address string) error {
	defer conn.Close()
	own, err := NewDoor(nil)
	if err != nil {
		return err
	}
	in := tls.Server(conn, own.config)
	line, err := readLine(in)
	if err != nil {
		return err
	}
	out, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.WriteString(out, line+"\n"); err != nil {
		return err
	}
	_, err = readLine(out)
	if err == nil {
		return errors.New("the server has answered")
	}
	return nil
}

// What one purpose is proved for counts for no other, although the secret is the same.
func TestAProofIsForOnePurpose(t *testing.T) {
	address, decided := listen(t, newDoor(t, map[Purpose]string{Server: "key", HTTP: "key"}))
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	proof, _, err := proofs(conn, Server, []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "abide http "+proof+"\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-decided; got != "refused" {
		t.Errorf("the proof for another purpose is accepted for %s", got)
	}
}
