// Package virtual runs any number of engines on one virtual clock.
//
// A Sim is a loop over events in the order of their time. Two sorts of events
// take turns: what its user scheduled, such as arrivals and scrapes, and outputs
// of engines, of which only the first tokens and the ends are told. What is due
// at the same nanosecond goes by Kind, then in the order of scheduling, engines
// by number. Nothing else decides, so a run is the same each time it is made.
//
// Engines are advanced lazily: an engine does nothing, and costs nothing, until
// it has an output to tell, a request to take in, or is looked at; runs of pure
// decode between these are summed up (simengine.Engine.Advance). What is seen is
// what the engine would show if it were stepped, and what the same engine shows
// on a wall clock under package live.
//
// Two things change what a run costs: TellTokens, which has all tokens told, and
// RunAhead, for those who know what will arrive (ahead.go).
//
// Start reading with Sim and Handler in sim.go. A Sim is not safe for concurrent
// use and starts no goroutine.
package virtual
