// Package terminal is what the tool's commands read from and write to people: the three [Streams] and what each is
// capable of, a [Table], a bar of [Progress], replies as redis-cli prints them ([Printer]), lines split as redis-cli
// splits them ([SplitLine]), and a reader that can be interrupted ([NewReader]).
//
// Bytes of a store or a server never reach a terminal as they are: [Safe] and the printer escape what a terminal would
// obey. A bar is drawn on the standard error only, and only where somebody sees it.
//
// Nothing here is safe for concurrent use, except that Read of NewReader's reader returns when its context ends.
package terminal
