// Package dispatch decides what becomes of a request, before it runs: it is refused, waits for the end of a pause, shares a
// transaction with its neighbours, runs at once, or leaves the event loop for a goroutine that may wait.
//
// There is one decision ([Decide]), by what the command table says of the command ([command.Cost]) and by what is so at
// this moment in the session and the server ([Situation]). It executes nothing and changes nothing.
package dispatch
