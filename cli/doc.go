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
// line that starts with "stave: ".
package cli
