package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model"
)

// A tokenError is the error of Config.Token.
type tokenError struct{ err error }

func (e tokenError) Error() string { return e.err.Error() }
func (e tokenError) Unwrap() error { return e.err }

// BadReply is the error for a reply that violates the protocol.
type BadReply string

func (e BadReply) Error() string { return string(e) }

// NotUnderstood returns the error for data that could not be decoded.
func NotUnderstood(data []byte, err error) BadReply {
	var other *json.UnmarshalTypeError
	switch errors.As(err, &other); {
	case len(bytes.TrimSpace(data)) == 0:
		return "it is empty"
	case other != nil && other.Field != "":
		return BadReply(fmt.Sprintf("its member %s is of the type %s, which was not expected, in %s", other.Field, other.Value, excerpt(data)))
	case other != nil:
		return BadReply(fmt.Sprintf("it is of the type %s, which was not expected, in %s", other.Value, excerpt(data)))
	}
	return BadReply(fmt.Sprintf("it is not JSON (%v), in %s", err, excerpt(data)))
}

// excerpt returns the beginning of data. It is longer than any quotation in an error.
func excerpt(data []byte) string {
	const enough = 2 << 10
	data = bytes.TrimSpace(data)
	if len(data) <= enough {
		return string(data)
	}
	return string(data[:enough]) + "…"
}

// explain converts the error that ended the attempt to the error that model.Model
// promises: the cause of the caller's context if that is done, else a *model.Error.
func (a *attempt) explain(err error) error {
	if a.caller.Err() != nil {
		return context.Cause(a.caller)
	}
	var known *model.Error
	if errors.As(err, &known) {
		return known
	}
	host := a.endpoint.Host
	switch context.Cause(a.ctx) {
	case errSilence:
		return &model.Error{Kind: model.KindTimeout, Err: errSilence,
			Message: fmt.Sprintf("%s sent nothing for %v; try again, or allow a longer silence", host, a.client.IdleTimeout)}
	case errTooLong:
		return &model.Error{Kind: model.KindTimeout, Err: errTooLong,
			Message: fmt.Sprintf("%s did not finish its reply within %v; try again, or allow more time", host, a.client.Timeout)}
	}
	var sending *url.Error
	if errors.As(err, &sending) { // its text contains the whole URL; that of the wrapped error does not
		kind := model.KindNetwork
		if notTLS(sending.Err) { // no waiting helps
			kind = model.KindNotFound
		}
		return &model.Error{Kind: kind, Err: sending.Err,
			Message: fmt.Sprintf("%s could not be reached: %s", host, a.explainUnreachable(sending.Err))}
	}
	return a.broken(err)
}

// broken returns the error for a reply that began and could not be read.
func (a *attempt) broken(err error) *model.Error {
	host := a.endpoint.Host
	var token tokenError
	var bad BadReply
	var said *Failure
	switch {
	case errors.As(err, &token):
		return &model.Error{Kind: model.KindAuth, Message: fmt.Sprintf("there is no token for %s (%s); sign in again or set a key",
			host, a.quote(token.Error()))}
	case errors.Is(err, errPage):
		return &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("%s answered with a web page instead of the %s API; check the base URL: %s", host, a.client.wire.Name, a.client.baseAdvice())}
	case errors.As(err, &bad):
		return &model.Error{Kind: model.KindStream, Garbled: true, Message: fmt.Sprintf("the reply of %s was not understood: %s; try again, or check that the base URL is that of a %s API: %s",
			host, a.quote(string(bad)), a.client.wire.Name, a.client.baseAdvice())}
	case errors.As(err, &said):
		return a.streamFailure(said)
	case errors.Is(err, errNoProgress):
		return &model.Error{Kind: model.KindTimeout, Err: err, Message: fmt.Sprintf("%s sent nothing but signs of life for %v; try again, or allow a longer silence", host, maxSilences*a.client.IdleTimeout)}
	case errors.Is(err, errEndless):
		return &model.Error{Kind: model.KindStream, Err: err, Garbled: true, Message: fmt.Sprintf("the reply of %s was given up because it did not end within 128 MiB; try again, or use another model", host)}
	case errors.Is(err, errLineTooLong):
		return &model.Error{Kind: model.KindStream, Err: err, Garbled: true, Message: fmt.Sprintf("the reply of %s was given up because a line of it is longer than 32 MiB; try again, or use another model", host)}
	}
	return &model.Error{Kind: model.KindStream, Err: err, Message: fmt.Sprintf("the reply of %s broke off (%s); try again", host, reason(err))}
}

// explainUnreachable returns the reason and the way out if there was no reply at all. If a proxy is
// configured for the provider, it names the proxy.
func (a *attempt) explainUnreachable(err error) string {
	proxy, none := http.ProxyFromEnvironment(&http.Request{URL: a.endpoint})
	if none != nil || proxy == nil {
		return unreachable(err, a.client.baseAdvice())
	}
	return fmt.Sprintf("the proxy %s did not let us through (%s); check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and the base URL", proxy.Host, oneLine(err.Error()))
}

// unreachable returns the reason and the way out if there was no reply at all. The advice is about
// the base URL.
func unreachable(err error, advice string) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case notTLS(err):
		return "it does not speak TLS; check the base URL, which begins with http:// for such a server: " + advice
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("there is no host %q; check the network and the base URL: %s", dns.Name, advice)
	case errors.As(err, &dns):
		return fmt.Sprintf("its name could not be looked up (%s); check the network", dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused; check that the server is running there, and the base URL: " + advice
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection without an answer; try again"
	case errors.As(err, &certificate):
		return fmt.Sprintf("its certificate is not trusted (%s); check the clock, or add its authority with SSL_CERT_FILE", oneLine(certificate.Err.Error()))
	}
	return fmt.Sprintf("%s; check the network and the base URL: %s", oneLine(err.Error()), advice)
}

// notTLS reports whether a server was asked with TLS and does not speak it.
func notTLS(err error) bool {
	var plain tls.RecordHeaderError
	return errors.As(err, &plain) || errors.Is(err, http.ErrSchemeMismatch)
}

// reason returns the reason for which a reply ended early.
func reason(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the stream ended before the model had finished"
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was reset"
	}
	return oneLine(err.Error())
}

// refusal returns the error for a response whose status is not 200.
func (a *attempt) refusal(resp *http.Response) *model.Error {
	said := readFailure(resp.Body)
	e := a.statusError(resp.StatusCode, said)
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 {
		e.Kind = model.KindNotFound
		e.Message = fmt.Sprintf("%s redirects to %s, and requests are not sent on to other places; set that as the base URL if you trust it",
			a.endpoint.Host, a.safeURL(to))
		if at := resp.Request.URL; a.safeURL(to) == a.safeURL(at.String()) {
			e.Message = fmt.Sprintf("%s redirects from %s to the same place again and again; check the base URL: %s", a.endpoint.Host, a.safeURL(to), a.client.baseAdvice())
		}
	}
	e.RetryAfter = cmp.Or(retryAfter(resp.Header), said.wait())
	return e
}

// safeURL returns a URL without user, query and the wire's own path.
func (a *attempt) safeURL(text string) string {
	u, err := a.endpoint.Parse(text)
	if err != nil || u.Host == "" {
		return "another place"
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"+a.client.wire.Path)
}

// statusError returns the error for an HTTP status and the failure that came with it.
func (a *attempt) statusError(status int, f *Failure) *model.Error {
	host, name := a.endpoint.Host, a.req.Model
	said := strconv.Itoa(status)
	if f.Message != "" {
		said += ": " + a.quote(f.Message)
	}
	fail := func(kind model.Kind, format string, args ...any) *model.Error {
		return &model.Error{Kind: kind, Status: status, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case f.overflow(), status == http.StatusRequestEntityTooLarge:
		return fail(model.KindOverflow, "the conversation does not fit into the window of model %q at %s (%s); compact it or choose a model with a larger window", name, host, said)
	case f.rejectsReasoning() && !a.req.Forget:
		return fail(model.KindReasoning, "%s no longer accepts the reasoning that it gave earlier (%s); ask again without it", host, said)
	case f.wantsResponses():
		return fail(model.KindRequest, "model %q at %s cannot call tools on the %s API (%s); use the Responses API: scheme = \"responses\" in the configuration of the provider, or wireApi \"responses\" of a client", name, host, a.client.wire.Name, said)
	case f.noQuota(), status == http.StatusPaymentRequired:
		return fail(model.KindAuth, "there is no quota left at %s (%s); check plan and billing of this key", host, said)
	case status == http.StatusUnauthorized && a.token == "":
		return fail(model.KindAuth, "%s wants a key and none is set (%s); set the API key %s", host, said, keyAdvice(a.client.Config, a.client.wire))
	case status == http.StatusUnauthorized:
		return fail(model.KindAuth, "%s does not accept the key (%s); set a valid API key %s", host, said, keyAdvice(a.client.Config, a.client.wire))
	case status == http.StatusForbidden:
		return fail(model.KindAuth, "%s denies access to model %q with this key (%s); use another key or model", host, name, said)
	case status == http.StatusNotFound:
		return fail(model.KindNotFound, "%s has no model %q at %s (%s); check the model's name and the base URL: %s", host, name, a.endpoint.Path, said, a.client.baseAdvice())
	case status == http.StatusMethodNotAllowed: // another server, or another path of it
		return fail(model.KindNotFound, "%s takes no requests at %s (%s); check the base URL: %s", host, a.endpoint.Path, said, a.client.baseAdvice())
	case status == http.StatusRequestTimeout:
		return fail(model.KindTimeout, "%s took too long and gave up (%s); try again", host, said)
	case status == http.StatusTooManyRequests:
		return fail(model.KindRateLimit, "%s gets too many requests (%s); wait a little and try again", host, said)
	case status >= 500:
		return fail(model.KindOverloaded, "%s has a problem of its own (%s); try again later", host, said)
	}
	return fail(model.KindRequest, "%s rejects the request (%s); check the model's settings", host, said)
}

// streamFailure returns the error for a failure in the middle of a reply.
func (a *attempt) streamFailure(f *Failure) *model.Error {
	if status, err := strconv.Atoi(string(f.Code)); err == nil && status >= 400 && status < 600 {
		e := a.statusError(status, f)
		e.RetryAfter = f.wait()
		return e
	}
	if status := f.status(); status != 0 {
		e := a.statusError(status, f)
		e.Status, e.RetryAfter = 0, f.wait()
		return e
	}
	return &model.Error{Kind: model.KindStream, Message: fmt.Sprintf("%s broke off its reply with an error (%s); try again",
		a.endpoint.Host, cmp.Or(a.quote(f.Message), "it gave no reason"))}
}

// longestWait is the longest time that a provider can ask us to wait: more than any clock
// will run, and still a duration.
const longestWait = 100 * 365 * 24 * time.Hour

// retryAfter returns the time that the provider asks us to wait, or zero.
func retryAfter(h http.Header) time.Duration {
	if d, ok := wait(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	after := h.Get("Retry-After")
	if d, ok := wait(after, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(after); err == nil {
		return min(max(0, time.Until(at)), longestWait)
	}
	return 0
}

// wait converts a number of units to a duration.
func wait(number string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0) {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(longestWait))), true
}

// quote returns a text of the provider for an error message. It removes all credentials,
// because providers often repeat them.
func (a *attempt) quote(text string) string {
	secrets := []string{a.token}
	for _, headers := range []map[string]string{a.client.Headers, a.req.Headers} {
		for _, value := range headers {
			secrets = append(secrets, value, strings.TrimPrefix(value, "Bearer "))
		}
	}
	for _, secret := range secrets {
		if len(secret) >= 4 { // removing shorter ones would damage other words
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return oneLine(text)
}

// oneLine returns a text as one short line.
func oneLine(text string) string {
	const enough = 300
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
	if len(text) <= enough {
		return text
	}
	cut := enough
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
