// Package cli is the stave program: the shell, one-shot commands, the server's
// start, and the offline tools (merge, check, repair, backup, stats, import, export).
//
// [Run] is the whole of it: arguments and three streams in, an exit status out,
// so that tests run the program without a process. Nothing here is of use to a
// program that embeds Stave: logic for that is in package db or below, and
// only called from here.
//
// The exit status says what happened:
//
//	0    done
//	1    a command was answered with an error
//	2    wrong usage
//	3    a store could not be opened (it is locked, damaged or not there), or a
//	     server not reached
//	4    check found damage, or repair lost something
//	5    an import left lines out
//	130  interrupted
//
// Data goes to the standard output, errors go to the standard error in one
// line that starts with "stave: "; mistakes of settings have a line each.
//
// # How a command is made
//
// NAME.go has a function nameCommand, which describes the options, and runName,
// which does the work; help/NAME.txt has the help. runName goes through the same
// steps nearly everywhere:
//
//	options     all are judged, with usagef, before anything is opened
//	context     terminal.Streams.Interruptible: the first Ctrl-C ends it
//	store       openExisting, or openOrMake for those that may make one;
//	            closed by a deferred closeInto, whose error counts
//	work        one call of a package below, with a progress bar around it
//	interrupt   looked at before any other error, which is most often caused by it
//	result      report, or a picture; then the status
//
// Commands that send commands to a store (shell, exec, cli, top) have a session
// (session.go) on a backend (backend.go): a store of this process or a server.
//
// # The packages in internal
//
// They do the work that needs no options: terminal (streams, bars, forms of
// replies), humanize (figures for people), remote (connections), execute (one
// command and its errors), history, fileimport, transfer (to and from a running
// Redis), inspect, benchmark.
package cli
