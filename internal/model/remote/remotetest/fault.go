package remotetest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
)

// A Fault is something that goes wrong with a request. It may let next answer,
// in whole or in part.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Status refuses the request. The headers are names and values in turn.
func Status(status int, message string, headers ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		refuse(w, status, "", message)
	}
}

// Raw answers with any bytes.
func Raw(contentType, body string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}

// Hang never answers. It ends when the client hangs up.
func Hang() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }
}

// Refuse resets the connection without a byte.
func Refuse() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(fmt.Sprintf("remotetest: %v", err))
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// CutBytes breaks the connection after n bytes of the answer.
func CutBytes(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutter{ResponseWriter: w, bytes: n, chunks: -1, stop: hangUp}, r)
		panic(http.ErrAbortHandler) // the answer was shorter
	}
}

// CutChunks breaks the connection after n chunks of a stream.
func CutChunks(n int) Fault { return afterChunks(n, func(*http.Request) { hangUp() }) }

// EndChunks ends a stream properly after n chunks: too early.
func EndChunks(n int) Fault { return afterChunks(n, func(*http.Request) { panic(errEnd) }) }

// StallChunks falls silent after n chunks of a stream.
func StallChunks(n int) Fault {
	return afterChunks(n, func(r *http.Request) {
		<-r.Context().Done()
		hangUp()
	})
}

var errEnd = errors.New("remotetest: end of the stream")

func hangUp() { panic(http.ErrAbortHandler) }

func afterChunks(n int, stop func(*http.Request)) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		defer func() {
			if e := recover(); e != nil && e != errEnd {
				panic(e)
			}
		}()
		next.ServeHTTP(&cutter{ResponseWriter: w, bytes: -1, chunks: n, stop: func() { stop(r) }}, r)
	}
}

// A cutter passes on so many bytes or chunks, then stops the handler.
type cutter struct {
	http.ResponseWriter
	bytes  int // number of bytes that are still sent; -1 for any number
	chunks int // number of chunks that are still sent; -1 for any number
	stop   func()
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.chunks == 0 {
		c.stop()
	}
	if c.bytes < 0 || len(p) <= c.bytes {
		c.bytes = max(-1, c.bytes-len(p))
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.bytes])
	c.Flush()
	c.stop()
	return 0, nil
}

// Flush ends a chunk.
func (c *cutter) Flush() {
	if c.chunks > 0 {
		c.chunks--
	}
	_ = http.NewResponseController(c.ResponseWriter).Flush()
}
