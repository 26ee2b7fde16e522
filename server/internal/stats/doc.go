// Package stats counts what a server does, and shows it: as the text of INFO, and in the text format of Prometheus.
//
// [Counters] are what sessions add to while they work: atomics, and nothing is computed ahead. [Figures] are what both
// texts are made of: the counters, and what the server knows of itself at one moment. Since the counters go on
// meanwhile, the figures of a text may be of slightly different moments.
//
// The texts hold nothing of the data: no key, no argument, no address of a client.
package stats
