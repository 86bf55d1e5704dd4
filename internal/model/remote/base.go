package remote

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// baseAdvice returns what to check if the base URL is probably wrong: where it comes from,
// what it is, and what a right one looks like.
func (c *Client) baseAdvice() string { return baseAdvice(c.Config, c.wire) }

func baseAdvice(c Config, w Wire) string {
	what := "the base URL is "
	if w.BaseEnv != "" && strings.TrimSpace(os.Getenv(w.BaseEnv)) == c.BaseURL {
		what = w.BaseEnv + " is "
	}
	right := w.BaseURL
	if c.Azure != nil {
		right = "https://NAME.openai.azure.com"
	}
	if c.BaseURL == right {
		return "it is " + right + ", the usual one"
	}
	if strings.Contains(c.BaseURL, "@") {
		if _, err := url.Parse(c.BaseURL); err != nil {
			right += "; write /, ?, # and @ in its user or password as %2F, %3F, %23 and %40"
		}
	}
	return fmt.Sprintf("%s%q, and one that works looks like %s", what, oneLine(model.OpenURL(c.BaseURL)), right)
}

// unusable returns the error of a client whose settings are invalid. No request is made, so it is
// the configuration that is wrong, and not the request.
func (c *Client) unusable() *model.Error {
	return &model.Error{Kind: model.KindNotFound, Message: c.invalid.Error()}
}

// keyAdvice returns where the key of the provider is set: in the vendor's variable if the key of this
// client is the value of that variable, else in the provider's settings. A client without a key has the
// vendor's variable if its base URL is the vendor's, or comes from the environment as well.
func keyAdvice(c Config, w Wire) string {
	fromEnv := w.KeyEnv != "" && c.Azure == nil && os.Getenv(w.KeyEnv) == c.APIKey && c.BearerToken == ""
	if fromEnv && (c.APIKey != "" || c.BaseURL == w.BaseURL || strings.TrimSpace(os.Getenv(w.BaseEnv)) == c.BaseURL) {
		return "in " + w.KeyEnv
	}
	return "in the provider's settings (api_key_env or api_key_command in the configuration)"
}

// isPage reports whether a reply is a web page, which no API sends.
func isPage(contentType string, data []byte) bool {
	start := strings.ToLower(strings.TrimSpace(string(data[:min(len(data), 64)])))
	return contentType == "text/html" || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
}

// errPage is the error of a reply that is a web page.
const errPage = BadReply("it is a web page")
