package config

import (
	"net/url"
	"slices"
)

// Notify says who is told when a session waits for a person, or has ended its turn. The zero
// value tells nobody.
type Notify struct {
	Command    string   `toml:"command" doc:"Command line for sh that is run for each notification, which it gets as JSON on its standard input; another exit code than 0 means that it is to be tried again. A project's file cannot set it."`
	Webhook    string   `toml:"webhook" doc:"URL to which each notification is posted as JSON; another status than 2xx means that it is to be tried again. A project's file cannot set it."`
	SecretFile string   `toml:"secret_file" doc:"File with the key of the signatures of the webhook (header webhook-signature, as in Standard Webhooks), relative to this file. They are not signed if it is not set."`
	On         []string `toml:"on" doc:"What is told: waits (a question is open) and ends (a turn has ended). Both if not set."`
}

func (n Notify) check(list []mistake) []mistake {
	if u, err := url.Parse(n.Webhook); n.Webhook != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		list = append(list, wrong(path{"notify", "webhook"}, "%q is not a URL like https://example.com/hook", n.Webhook))
	}
	for _, on := range n.On {
		if !slices.Contains([]string{"waits", "ends"}, on) {
			list = append(list, wrong(path{"notify", "on"}, "%q is unknown; use waits and ends", on))
		}
	}
	return list
}
