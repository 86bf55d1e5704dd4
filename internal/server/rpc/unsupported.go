package rpc

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// truths are the answers to questions about what there is none of here: accounts,
// plugins, canvases.
var truths = map[string]string{
	"account.getAllUsers":                                    `[]`,
	"account.getCurrentAuth":                                 `{}`,
	"account.getQuota":                                       `{"quotaSnapshots":{}}`,
	"extensions.discover":                                    `{"extensions":[],"mode":"disabled"}`,
	"managedSettings.read":                                   `{}`,
	"plugins.builtin.set":                                    `null`, // clients that bring plugins along send this whether or not it is of use
	"plugins.list":                                           `{"plugins":[]}`,
	"plugins.marketplaces.list":                              `{"marketplaces":[]}`,
	"plugins.updateAll":                                      `{"results":[]}`,
	"session.canvas.list":                                    `{"canvases":[]}`,
	"session.canvas.listOpen":                                `{"openCanvases":[]}`,
	"session.completions.getTriggerCharacters":               `{"triggerCharacters":[]}`,
	"session.completions.request":                            `{"items":[]}`,
	"session.extensions.list":                                `{"extensions":[]}`,
	"session.factory.listRuns":                               `{"runs":[]}`,
	"session.gitHubAuth.getAllAuthAvailable":                 `[]`,
	"session.gitHubAuth.getStatus":                           `{"isAuthenticated":false,"statusMessage":"abide needs no account"}`,
	"session.gitHubAuth.lastAuthErrors":                      `[]`,
	"session.plugins.list":                                   `{"plugins":[]}`,
	"session.telemetry.getEngagementId":                      `{}`,
	"session.visibility.get":                                 `{"synced":false}`,
	"sessions.findByTaskId":                                  `{}`,
	"sessions.getBoardEntryCount":                            `{}`,
	"sessions.getPersistedRemoteSteerable":                   `{}`,
	"sessions.loadDeferredRepoHooks":                         `{"hookCount":0,"startupPrompts":[]}`,
	"session.ui.handlePendingAutoModeSwitch":                 `{"success":false}`, // nobody asked
	"session.ui.handlePendingSampling":                       `{"success":false}`,
	"session.mcp.oauth.respond":                              `{"success":false}`,
	"session.ui.handlePendingSessionLimitsExhausted":         `{"success":false}`,
	"session.mcp.headers.handlePendingHeadersRefreshRequest": `{"success":false}`,
}

// These methods answer with them.
var _ = register(truthMethods())

func truthMethods() map[string]method {
	all := make(map[string]method, len(truths))
	for name, truth := range truths {
		all[name] = func(c *conn, ctx context.Context, req *jsonrpc.Request) (any, error) {
			if !strings.HasPrefix(name, "session.") {
				return json.RawMessage(truth), nil
			}
			p, err := params[api.SessionParams](req)
			if err == nil {
				_, err = c.server.host.Status(ctx, p.SessionID)
			}
			return json.RawMessage(truth), noSession(p.SessionID, err)
		}
	}
	return all
}

// families are the parts of the protocol that we know of and do not have, by how
// their methods begin.
var families = []struct{ prefix, what string }{
	{"account.", "GitHub accounts"},
	{"agentRegistry.", "an agent registry"},
	{"agents.", "custom agents in files"},
	{"catalog.", "a catalogue"},
	{"extensions.", "extensions"},
	{"mcp.", "that part of MCP"},
	{"plugins.", "plugins"},
	{"registerExtensionLaunchProvider", "extensions"},
	{"secrets.", "masking of values"},
	{"session.cancelAllBackgroundAgents", "background agents"},
	{"session.canvas.", "canvases"},
	{"session.contentExclusion.", "content exclusion"},
	{"session.debug.", "collecting of logs"},
	{"session.extensions.", "extensions"},
	{"session.factory.", "factories"},
	{"session.fleet.", "fleets of agents"},
	{"session.gitHubAuth.", "GitHub accounts"},
	{"session.history.", "that part of the history"},
	{"session.limitPrediction.", "billing"},
	{"session.lsp.", "language servers"},
	{"session.mcp.", "that part of MCP"},
	{"session.plugins.", "plugins"},
	{"session.remote.", "remote sessions"},
	{"session.schedule.", "schedules"},
	{"session.settings.", "settings of sessions"},
	{"session.shell.", "commands of users that the model hears of"},
	{"session.tasks.", "agents in the background"},
	{"session.telemetry.", "telemetry"},
	{"session.visibility.", "sharing"},
	{"session.workspaces.", "that part of the workspace"},
	{"sessionFs.", "storage at the client"},
	{"sessions.", "that part of managing sessions"},
	{"skills.", "settings for skills"},
	{"user.settings.", "settings of users"},
}

// unsupported tells a client at once that there is no such method, and why if
// it is one that it may well expect.
func unsupported(method string) *jsonrpc.Error {
	for _, f := range families {
		if strings.HasPrefix(method, f.prefix) {
			return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s is not supported: abide does not have %s", method, f.what)
		}
	}
	return jsonrpc.MethodNotFound(method)
}
