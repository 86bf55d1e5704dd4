package api

// The methods about the servers that share a log.
const (
	ServersList  = "abide.servers.list"
	ServersDrain = "abide.servers.drain" // hand over what a server works on
)

// The states of a server.
const (
	ServerLive     = "live"
	ServerDraining = "draining" // it claims no session, and hands over those it has
	ServerDead     = "dead"     // the others have seen no beat of it for some time
)

// A Server is one of those that share a log.
type Server struct {
	ID       string `json:"id"` // new at each start
	Address  string `json:"address"`
	Version  string `json:"version"`
	Machine  string `json:"machine"` // id of its data folder
	Status   string `json:"status"`
	Sessions int    `json:"sessions"` // sessions that it owns
	Busy     int    `json:"busy"`     // sessions in which something is under way
	Beat     int64  `json:"beat"`     // counts up as long as it lives
	Self     bool   `json:"self,omitempty"`
}

// ServersResult is the answer to ServersList.
type ServersResult struct {
	Servers []Server `json:"servers"`
}

// DrainParams are the parameters of ServersDrain.
type DrainParams struct {
	ID string `json:"id"`
}

// Elsewhere is the data of the error CodeElsewhere. Its fields are empty if it is not known yet which
// server works on the session.
type Elsewhere struct {
	Server  string `json:"server,omitempty"`
	Address string `json:"address,omitempty"`
}
