// Package latency keeps how long commands take, in two ways. [Spikes] are single executions that took at least
// latency-monitor-threshold, by event, the last ones only: LATENCY LATEST and its like. A [Histogram] counts all
// executions of one command by how long they took: LATENCY HISTOGRAM and INFO latencystats. [Command] is LATENCY.
//
// Both may be used by several goroutines. Spikes have a mutex, which is held for some instructions, or while a reply is
// written into memory; a histogram is atomic counters, so that noting costs one addition. Who notes what, and whether
// at all, the server decides.
package latency
