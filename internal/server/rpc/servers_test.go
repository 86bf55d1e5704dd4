package rpc

var _ = mayRepeat("ServersList", "ServersDrain")
