package config

import "math"

// Budget limits what model requests may cost. A limit that is missing does not exist; a limit
// of zero is asked about before every request.
type Budget struct {
	SessionCost   *float64 `toml:"session_cost" doc:"US dollars that a session and its agents may cost; 0 asks before every request. No limit if not set."`
	SessionTokens *int     `toml:"session_tokens" doc:"Tokens, sent and received, that a session and its agents may use; 0 asks before every request. No limit if not set."`
	DayCost       *float64 `toml:"day_cost" doc:"US dollars that all sessions may cost on one day, in the time zone of the engine; 0 asks before every request. No limit if not set."`
	DayTokens     *int     `toml:"day_tokens" doc:"Tokens, sent and received, that all sessions may use on one day, in the time zone of the engine; 0 asks before every request. No limit if not set."`
}

func (b Budget) check(list []mistake) []mistake {
	list = money(list, path{"budget", "session_cost"}, b.SessionCost)
	list = given(list, path{"budget", "session_tokens"}, b.SessionTokens)
	list = money(list, path{"budget", "day_cost"}, b.DayCost)
	return given(list, path{"budget", "day_tokens"}, b.DayTokens)
}

// money refuses what is no amount of money.
func money(list []mistake, key path, value *float64) []mistake {
	switch {
	case value == nil || *value >= 0 && !math.IsInf(*value, 0):
		return list
	case *value < 0 && !math.IsInf(*value, 0):
		return append(list, wrong(key, "%v is negative; use 0 or more, in US dollars", *value))
	}
	return append(list, wrong(key, "%v is not an amount of US dollars; leave the key out for no limit", *value))
}
